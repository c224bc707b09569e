// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_health.h"

#include <string_view>

#include "api/render/render_common.h"
#include "api/text/json_writer.h"
#include "store/model/measure.h"

namespace flamed::api {
namespace {

std::string render(std::string_view status, const Health& health,
                   const std::optional<HistoryFile>& file = std::nullopt) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("status").string(status);
  if (file) {
    json.key("file").begin_object();
    json.key("name").string(file->name);
    json.key("host");
    if (file->host.empty()) {
      json.null();
    } else {
      json.string(file->host);
    }
    json.key("window");
    append_window(json, file->stretch);
    json.end_object();
  }
  if (health.oldest) {
    json.key("oldest").time(*health.oldest);
    json.key("oldest_ms").number(health.oldest->ns / kNsPerMs);
  }
  json.key("components").begin_array();
  for (const Component& component : health.components) {
    json.begin_object();
    json.key("name").string(component.name);
    json.key("ok").boolean(component.ok);
    json.key("detail").string(component.detail);
    json.end_object();
  }
  json.end_array();
  json.key("measures").begin_array().string(name_of(store::Measure::kCpu));
  if (health.has_waits) {
    json.string(name_of(store::Measure::kWait)).string(name_of(store::Measure::kWall));
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace

std::string render_health(const Health& health, const std::optional<HistoryFile>& file) {
  return render(health.healthy ? "ok" : "failing", health, file);
}

std::string render_readiness(const Health& health) { return render(health.ready ? "ready" : "not ready", health); }

}  // namespace flamed::api
