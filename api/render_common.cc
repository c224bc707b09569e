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
  const auto append_text = [&](std::string_view name, const std::string& text) {
    json.key(name);
    if (text.empty()) {
      json.null();
    } else {
      json.string(text);
    }
  };
  json.key("id").string(std::to_string(process.id.pid) + "@" + std::to_string(process.id.start_ticks));
  json.key("pid").number(std::int64_t{process.id.pid});
  json.key("start_ticks").number(process.id.start_ticks);
  json.key("comm").string(process.comm);
  append_text("executable", process.executable);
  append_time("started", process.started);
  append_time("ended", process.ended);
  append_text("command_line", process.command_line);
  json.key("uid");
  if (process.uid) {
    json.number(std::uint64_t{*process.uid});
  } else {
    json.null();
  }
  append_text("unit", process.unit);
  append_text("container", process.container);
  append_text("cgroup", process.cgroup);
  std::string parent;
  if (process.parent_start_ticks != 0) {
    parent = std::to_string(process.parent_pid) + "@" + std::to_string(process.parent_start_ticks);
  } else if (process.parent_pid != 0) {
    parent = std::to_string(process.parent_pid);
  }
  append_text("parent", parent);
}

double cpu_seconds(std::uint64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerSecond); }

}  // namespace flamed::api
