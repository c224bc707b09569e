// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_health.h"

#include <string_view>

#include "api/text/json_writer.h"
#include "store/model/measure.h"

namespace flamed::api {
namespace {

std::string render(std::string_view status, const Health& health) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("status").string(status);
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

std::string render_health(const Health& health) { return render(health.healthy ? "ok" : "failing", health); }

std::string render_readiness(const Health& health) { return render(health.ready ? "ready" : "not ready", health); }

}  // namespace flamed::api
