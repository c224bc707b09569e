// SPDX-License-Identifier: Apache-2.0
#include "api/render_common.h"

#include <string>

namespace flamed::api {

void append_window(JsonWriter& json, const store::WallWindow& window) {
  json.begin_object();
  json.key("from").time(window.from);
  json.key("to").time(window.to);
  json.key("from_ms").number(window.from.ns / kNsPerMs);
  json.key("to_ms").number(window.to.ns / kNsPerMs);
  json.end_object();
}

void append_quality(JsonWriter& json, const store::Quality& quality) {
  json.begin_object();
  json.key("whole").number(quality.whole);
  json.key("truncated").begin_object();
  for (std::size_t i = 0; i < quality.truncated.size(); ++i) {
    json.key(name_of(static_cast<store::Truncation>(i))).number(quality.truncated[i]);
  }
  json.end_object();
  json.key("lost").begin_object();
  for (std::size_t i = 0; i < quality.lost.size(); ++i) {
    json.key(name_of(static_cast<store::Loss>(i))).number(quality.lost[i]);
  }
  json.end_object();
  json.end_object();
}

void append_process(JsonWriter& json, const store::ProcessInfo& process) {
  const auto append_time = [&](std::string_view name, const std::optional<WallTime>& moment) {
    json.key(name);
    if (moment) {
      json.time(*moment);
    } else {
      json.null();
    }
  };
  json.key("id").string(std::to_string(process.id.pid) + "@" + std::to_string(process.id.start_ticks));
  json.key("pid").number(std::int64_t{process.id.pid});
  json.key("start_ticks").number(process.id.start_ticks);
  json.key("comm").string(process.comm);
  json.key("executable");
  if (process.executable.empty()) {
    json.null();
  } else {
    json.string(process.executable);
  }
  append_time("started", process.started);
  append_time("ended", process.ended);
}

double cpu_seconds(std::uint64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerSecond); }

}  // namespace flamed::api
