// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_flamegraph.h"

#include <charconv>
#include <cstdint>
#include <vector>

#include "api/render/render_common.h"
#include "api/text/json_writer.h"

namespace flamed::api {
namespace {

/// The members that all nodes of a frame share, escaped once: `"name":"f","module":"m","kind":"native"`.
std::vector<std::string> render_frames(const store::FrameList& frames) {
  std::vector<std::string> rendered;
  rendered.reserve(frames.size());
  for (const store::NamedFrame& frame : frames) {
    std::string text;
    JsonWriter json(text);
    append_frame(json, frame);
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

/// The tree below and including the root, without the root's opening brace. Parents come first, so one pass with the
/// path of open nodes can write any depth.
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
      // The root always has the array `children`: readers may rely on it.
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
  const std::uint64_t samples = profile.nodes.front().total_samples;
  append_facts(json, profile, frequency_hz, samples, profile.cpu_ns(samples));
  append_trust(json, profile);
  append_processes(json, profile.processes);
  out += ',';
  append_tree(out, profile);
  out += '\n';
  return out;
}

}  // namespace flamed::api
