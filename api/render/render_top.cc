// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_top.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>

#include "api/render/render_common.h"
#include "api/text/json_writer.h"

namespace flamed::api {
namespace {

double percent_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::vector<TopFunction> top_functions(const store::Profile& profile) {
  std::vector<TopFunction> functions(profile.frames.size());
  std::vector<std::uint32_t> open(profile.frames.size(), 0);  // how often the frame is on the path
  std::vector<std::uint32_t> path;
  for (std::uint32_t i = 0; i < profile.nodes.size(); ++i) {
    const store::ProfileNode& node = profile.nodes[i];
    while (!path.empty() && (i == 0 || path.back() != node.parent)) {
      --open[profile.nodes[path.back()].frame];
      path.pop_back();
    }
    TopFunction& function = functions[node.frame];
    function.self_samples += node.self_samples;
    if (open[node.frame] == 0) function.total_samples += node.total_samples;
    ++open[node.frame];
    path.push_back(i);
  }
  for (std::uint32_t frame = 0; frame < functions.size(); ++frame) functions[frame].frame = frame;
  functions.erase(std::remove_if(functions.begin(), functions.end(),
                                 [&](const TopFunction& function) {
                                   const bool is_code = profile.frames[function.frame].kind != store::FrameKind::kRoot;
                                   return !is_code || function.total_samples == 0;
                                 }),
                  functions.end());
  std::sort(functions.begin(), functions.end(), [&](const TopFunction& a, const TopFunction& b) {
    return std::tie(b.self_samples, b.total_samples, profile.frames[a.frame].name, a.frame) <
           std::tie(a.self_samples, a.total_samples, profile.frames[b.frame].name, b.frame);
  });
  return functions;
}

std::string render_top_json(const store::Profile& profile, double frequency_hz, std::size_t rows) {
  const std::vector<TopFunction> functions = top_functions(profile);
  const std::uint64_t samples = profile.nodes.front().total_samples;
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_facts(json, profile, frequency_hz, samples, profile.cpu_ns(samples));
  append_trust(json, profile);
  append_processes(json, profile.processes);
  json.key("functions_found").number(std::uint64_t{functions.size()});
  json.key("functions").begin_array();
  for (std::size_t i = 0; i < std::min(rows, functions.size()); ++i) {
    const TopFunction& function = functions[i];
    json.begin_object();
    append_frame(json, profile.frames[function.frame]);
    json.key("self").number(function.self_samples);
    json.key("total").number(function.total_samples);
    json.key("self_percent").number(percent_of(function.self_samples, samples));
    json.key("total_percent").number(percent_of(function.total_samples, samples));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

std::string render_top_text(const store::Profile& profile, std::size_t rows) {
  const std::vector<TopFunction> functions = top_functions(profile);
  const std::uint64_t samples = profile.nodes.front().total_samples;
  std::array<char, 128> line{};
  std::string out = text_head(profile, samples, profile.cpu_ns(samples));
  out += "      self  self%     total total%  function (module)\n";
  for (std::size_t i = 0; i < std::min(rows, functions.size()); ++i) {
    const TopFunction& function = functions[i];
    const store::NamedFrame& frame = profile.frames[function.frame];
    std::snprintf(line.data(), line.size(), "%10llu %5.1f%% %9llu %5.1f%%  ",
                  static_cast<unsigned long long>(function.self_samples), percent_of(function.self_samples, samples),
                  static_cast<unsigned long long>(function.total_samples), percent_of(function.total_samples, samples));
    out += line.data();
    out += one_line(frame.name);
    if (!frame.module.empty()) out += " (" + one_line(frame.module) + ")";
    out += '\n';
  }
  return out;
}

}  // namespace flamed::api
