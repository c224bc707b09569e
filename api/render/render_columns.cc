// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_columns.h"

#include "api/render/frame_columns.h"
#include "api/render/render_common.h"

namespace flamed::api {

std::string render_columns(const store::Profile& profile, double frequency_hz, ColumnForm form) {
  ColumnWriter out(form);
  JsonWriter& json = out.json();
  json.begin_object();
  const std::uint64_t samples = profile.nodes.front().total_samples;
  append_facts(json, profile, frequency_hz, samples, profile.cpu_ns(samples));
  append_trust(json, profile);
  append_processes(json, profile.processes);
  json.key("columns").begin_object();
  append_frame_columns(out, profile.frames);
  json.key("nodes").begin_object();
  out.column("frame", profile.nodes, [](const store::ProfileNode& node) { return node.frame; });
  append_depths(out, profile.nodes);
  out.column("self", profile.nodes, [](const store::ProfileNode& node) { return node.self_samples; });
  json.end_object();
  json.end_object();
  json.end_object();
  return out.finish();
}

}  // namespace flamed::api
