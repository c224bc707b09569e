// SPDX-License-Identifier: Apache-2.0
#include "api/render/render_diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string_view>
#include <vector>

#include "api/render/folded_name.h"
#include "api/render/frame_columns.h"
#include "api/render/render_common.h"
#include "api/text/json_writer.h"

namespace flamed::api {
namespace {

/// In addition to a tree; format=top has more.
constexpr std::size_t kFunctionsBesideTree = 100;

double symbolised_share(const store::ProfileDiff& diff, store::DiffCount store::DiffNode::*side) {
  std::uint64_t all = 0;
  std::uint64_t named = 0;
  for (const store::DiffNode& node : diff.nodes) {
    const store::FrameKind kind = diff.frames[node.frame].kind;
    if (kind == store::FrameKind::kRoot || kind == store::FrameKind::kMarker) continue;
    all += (node.*side).total_samples;
    if (!is_nameless(kind)) named += (node.*side).total_samples;
  }
  return all == 0 ? 1 : static_cast<double>(named) / static_cast<double>(all);
}

void append_side(JsonWriter& json, std::string_view name, const store::ProfileDiff& diff,
                 store::DiffCount store::DiffNode::*count, double frequency_hz) {
  const store::DiffSide& side = count == &store::DiffNode::before ? diff.before : diff.after;
  json.key(name).begin_object();
  append_facts(json, side, frequency_hz, side.total_samples, side.cpu_ns(side.total_samples));
  json.key("symbolised_share").number(symbolised_share(diff, count));
  append_unnamed(json, diff, count);
  append_coverage(json, side);
  append_processes(json, side.processes);
  json.end_object();
}

void append_count(JsonWriter& json, std::string_view name, const store::DiffCount& count) {
  json.key(name).begin_object();
  json.key("self").number(count.self_samples);
  json.key("total").number(count.total_samples);
  json.end_object();
}

void append_functions(JsonWriter& json, const store::ProfileDiff& diff, std::size_t rows) {
  json.key("functions_found").number(std::uint64_t{diff.functions.size()});
  json.key("functions").begin_array();
  for (std::size_t i = 0; i < std::min(rows, diff.functions.size()); ++i) {
    const store::DiffFunction& function = diff.functions[i];
    json.begin_object();
    append_frame(json, diff.frames[function.frame]);
    append_count(json, "before", function.before);
    append_count(json, "after", function.after);
    json.key("change_self").number(function.self.change());
    json.key("change_total").number(function.change_total);
    json.key("z").number(function.self.z);
    json.key("significant").boolean(function.self.significant);
    json.end_object();
  }
  json.end_array();
}

/// All functions, as columns.
void append_function_columns(ColumnWriter& out, const std::vector<store::DiffFunction>& functions) {
  using Function = store::DiffFunction;
  out.json().key("functions").begin_object();
  out.column("frame", functions, [](const Function& function) { return function.frame; });
  out.column("self", functions, [](const Function& function) { return function.after.self_samples; });
  out.column("total", functions, [](const Function& function) { return function.after.total_samples; });
  out.column("self_before", functions, [](const Function& function) { return function.before.self_samples; });
  out.column("total_before", functions, [](const Function& function) { return function.before.total_samples; });
  std::vector<double> z;
  z.reserve(functions.size());
  for (const Function& function : functions) z.push_back(std::round(100 * function.self.z) / 100);
  out.reals("z", z);
  out.column("significant", functions, [](const Function& function) { return function.self.significant ? 1U : 0U; });
  out.json().end_object();
}

void append_head(JsonWriter& json, const store::ProfileDiff& diff, double frequency_hz) {
  json.key("normalise").string(diff.normalise == store::Normalise::kTime ? "time" : "samples");
  append_side(json, "before", diff, &store::DiffNode::before, frequency_hz);
  append_side(json, "after", diff, &store::DiffNode::after, frequency_hz);
  json.key("warnings").begin_array();
  for (const std::string& warning : diff.warnings) json.string(warning);
  json.end_array();
}

/// Of both sides, and of their comparison.
std::string diff_warning_lines(const std::string& prefix, const store::ProfileDiff& diff) {
  return warning_lines(prefix + "before: ", diff.before.warnings) +
         warning_lines(prefix + "after: ", diff.after.warnings) + warning_lines(prefix, diff.warnings);
}

void append_node(JsonWriter& json, const store::ProfileDiff& diff, const store::DiffNode& node) {
  append_frame(json, diff.frames[node.frame]);
  json.key("value").number(node.after.total_samples);
  json.key("self").number(node.after.self_samples);
  json.key("value_before").number(node.before.total_samples);
  json.key("self_before").number(node.before.self_samples);
  json.key("change").number(node.change_total);
  json.key("change_self").number(node.self.change());
  json.key("z").number(node.self.z);
  json.key("significant").boolean(node.self.significant);
}

}  // namespace

std::string render_diff_flamegraph(const store::ProfileDiff& diff, double frequency_hz) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_head(json, diff, frequency_hz);
  append_functions(json, diff, kFunctionsBesideTree);
  append_node(json, diff, diff.nodes.front());
  json.key("children").begin_array();
  struct Open {
    std::uint32_t node;
    bool has_children;
  };
  std::vector<Open> path{{0, true}};
  const auto close = [&] {
    if (path.back().has_children) json.end_array();
    json.end_object();
    path.pop_back();
  };
  for (std::uint32_t i = 1; i < diff.nodes.size(); ++i) {
    while (path.back().node != diff.nodes[i].parent) close();
    if (!path.back().has_children) {
      json.key("children").begin_array();
      path.back().has_children = true;
    }
    json.begin_object();
    append_node(json, diff, diff.nodes[i]);
    path.push_back({i, false});
  }
  while (!path.empty()) close();
  out += '\n';
  return out;
}

std::string render_diff_columns(const store::ProfileDiff& diff, double frequency_hz, ColumnForm form) {
  ColumnWriter out(form);
  JsonWriter& json = out.json();
  json.begin_object();
  append_head(json, diff, frequency_hz);
  json.key("columns").begin_object();
  append_frame_columns(out, diff.frames);
  append_function_columns(out, diff.functions);
  json.key("nodes").begin_object();
  out.column("frame", diff.nodes, [](const store::DiffNode& node) { return node.frame; });
  append_depths(out, diff.nodes);
  out.column("self", diff.nodes, [](const store::DiffNode& node) { return node.after.self_samples; });
  out.column("self_before", diff.nodes, [](const store::DiffNode& node) { return node.before.self_samples; });
  out.column("significant", diff.nodes, [](const store::DiffNode& node) { return node.self.significant ? 1U : 0U; });
  json.end_object();
  json.end_object();
  json.end_object();
  return out.finish();
}

std::string render_diff_folded(const store::ProfileDiff& diff) {
  // Stacks with the same text are one line, in byte order.
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> lines;
  std::string stack;
  std::vector<std::size_t> ends;  // of the stack's text at each depth
  std::vector<std::uint32_t> path;
  for (std::uint32_t i = 0; i < diff.nodes.size(); ++i) {
    const store::DiffNode& node = diff.nodes[i];
    while (!path.empty() && (i == 0 || path.back() != node.parent)) {
      path.pop_back();
      ends.pop_back();
    }
    stack.resize(ends.empty() ? 0 : ends.back());
    // As in the folded profile, the root is not part of a stack, unless it is the whole stack.
    if (i != 0) {
      if (!stack.empty()) stack += ';';
      stack += folded_name(diff.frames[node.frame].name);
    }
    path.push_back(i);
    ends.push_back(stack.size());
    if (node.before.self_samples == 0 && node.after.self_samples == 0) continue;
    auto& [before, after] = lines[i == 0 ? folded_name(diff.frames[node.frame].name) : stack];
    before += node.before.self_samples;
    after += node.after.self_samples;
  }
  std::string out = diff_warning_lines("# ", diff);
  for (const auto& [text, counts] : lines) {
    out += text + " " + std::to_string(counts.first) + " " + std::to_string(counts.second) + "\n";
  }
  return out;
}

std::string render_diff_top_json(const store::ProfileDiff& diff, double frequency_hz, std::size_t rows) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  append_head(json, diff, frequency_hz);
  append_functions(json, diff, rows);
  json.end_object();
  out += '\n';
  return out;
}

std::string render_diff_top_text(const store::ProfileDiff& diff, std::size_t rows) {
  std::string out = diff_warning_lines("warning: ", diff) +
                    "    before     after  change      z  function (module); changes of " +
                    std::string(diff.normalise == store::Normalise::kTime ? "CPUs in use" : "the share") +
                    ", * where chance does not explain them\n";
  for (std::size_t i = 0; i < std::min(rows, diff.functions.size()); ++i) {
    const store::DiffFunction& function = diff.functions[i];
    const store::NamedFrame& frame = diff.frames[function.frame];
    std::array<char, 128> line{};
    std::snprintf(line.data(), line.size(), "%10llu %9llu %+6.2f%% %+6.1f%c ",
                  static_cast<unsigned long long>(function.before.self_samples),
                  static_cast<unsigned long long>(function.after.self_samples), 100 * function.self.change(),
                  function.self.z, function.self.significant ? '*' : ' ');
    out += line.data() + folded_name(frame.name);
    if (!frame.module.empty()) out += " (" + folded_name(frame.module) + ")";
    out += '\n';
  }
  return out;
}

}  // namespace flamed::api
