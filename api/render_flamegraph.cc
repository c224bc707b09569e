// SPDX-License-Identifier: Apache-2.0
#include "api/render_flamegraph.h"

#include <charconv>
#include <cstdint>
#include <vector>

#include "api/json_writer.h"
#include "api/render_common.h"

namespace flamed::api {
namespace {

/// What is the same for every node of a frame, escaped once: `"name":"f","module":"m","kind":"native"`.
std::vector<std::string> render_frames(const std::vector<store::NamedFrame>& frames) {
  std::vector<std::string> rendered;
  rendered.reserve(frames.size());
  for (const store::NamedFrame& frame : frames) {
    std::string text;
    JsonWriter json(text);
    json.key("name").string(frame.name);
    json.key("kind").string(name_of(frame.kind));
    if (!frame.module.empty()) json.key("module").string(frame.module);
    if (!frame.reason.empty()) json.key("reason").string(frame.reason);
    if (!frame.build_id.empty()) json.key("build_id").string(frame.build_id);
    if (!frame.file.empty()) json.key("file").string(frame.file);
    if (frame.line != 0) json.key("line").number(std::uint64_t{frame.line});
    if (frame.inlined) json.key("inlined").boolean(true);
    rendered.push_back(std::move(text));
  }
  return rendered;
}

void append_members(std::string& out, const store::ProfileNode& node, const std::vector<std::string>& frames) {
  JsonWriter json(out);
  json.raw(frames[node.frame]);
  json.key("value").number(node.total_samples);
  json.key("self").number(node.self_samples);
}

/// The tree below and including the root, without the root's opening brace. Nodes come parents first, so one pass with
/// the path of open nodes in hand writes any depth.
void append_tree(std::string& out, const store::Profile& profile) {
  const std::vector<std::string> frames = render_frames(profile.frames);
  struct Open {
    std::uint32_t node;
    bool has_children;
  };
  std::vector<Open> path;
  const auto close = [&] {
    out += path.back().has_children ? "]}" : "}";
    path.pop_back();
  };
  for (std::uint32_t i = 0; i < profile.nodes.size(); ++i) {
    const store::ProfileNode& node = profile.nodes[i];
    if (i == 0) {
      append_members(out, node, frames);
      // The root has children even when it has none: readers may count on the array.
      out += ",\"children\":[";
      path.push_back({i, false});
      continue;
    }
    while (path.size() > 1 && path.back().node != node.parent) close();
    if (path.back().has_children) {
      out += ',';
    } else if (path.size() > 1) {
      out += ",\"children\":[";
    }
    path.back().has_children = true;
    out += '{';
    append_members(out, node, frames);
    path.push_back({i, false});
  }
  while (path.size() > 1) close();
  out += "]}";
}

}  // namespace

std::string render_flamegraph(const store::Profile& profile, double frequency_hz) {
  std::string out;
  out.reserve(4096 + profile.nodes.size() * 96);
  JsonWriter json(out);
  json.begin_object();
  json.key("window").begin_object();
  append_window(json.key("asked"), profile.asked);
  append_window(json.key("used"), profile.used);
  json.end_object();
  json.key("resolution_ms").number(profile.resolution_ns / kNsPerMs);
  json.key("period_ns").number(profile.period_ns);
  json.key("frequency_hz").number(frequency_hz);
  json.key("samples").number(profile.nodes.front().total_samples);
  json.key("cpu_seconds").number(cpu_seconds(profile.nodes.front().total_ns));
  append_quality(json.key("quality"), profile.quality);
  json.key("processes").begin_array();
  for (const store::ProcessInfo& process : profile.processes) {
    json.begin_object();
    append_process(json, process);
    json.end_object();
  }
  json.end_array();
  json.key("warnings").begin_array();
  for (const std::string& warning : profile.warnings) json.string(warning);
  json.end_array();
  out += ',';
  append_tree(out, profile);
  out += '\n';
  return out;
}

}  // namespace flamed::api
