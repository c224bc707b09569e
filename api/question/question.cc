// SPDX-License-Identifier: Apache-2.0
#include "api/question/question.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "api/text/time_expression.h"
#include "store/query/query.h"

namespace flamed::api {
namespace {

constexpr std::array<std::string_view, 10> kSelectors{"pid",       "tid",    "comm", "exe",  "unit",
                                                      "container", "cgroup", "uid",  "tree", "side"};

store::Side side_of(std::string_view name) {
  if (name == "user") return store::Side::kUser;
  return name == "kernel" ? store::Side::kKernel : store::Side::kBoth;
}

/// Does the query have a selecting parameter with the prefix?
bool selects(const Parameters& parameters, const std::string& prefix) {
  return std::any_of(kSelectors.begin(), kSelectors.end(),
                     [&](std::string_view name) { return parameters.given(prefix + std::string(name)); });
}

store::Selection read_selection(const Parameters& parameters, const std::string& prefix,
                                const store::WallWindow& window) {
  store::Selection selection;
  selection.window = window;
  selection.processes = parameters.processes(prefix + "pid");
  if (parameters.takes(prefix + "tid")) {
    for (const std::int64_t tid : parameters.integers(prefix + "tid")) {
      selection.tids.push_back(static_cast<std::int32_t>(tid));
    }
    selection.comms = parameters.texts(prefix + "comm");
    selection.side = side_of(parameters.choice(prefix + "side"));
  }
  selection.executables = parameters.texts(prefix + "exe");
  selection.units = parameters.texts(prefix + "unit");
  selection.containers = parameters.texts(prefix + "container");
  selection.cgroups = parameters.texts(prefix + "cgroup");
  for (const std::int64_t uid : parameters.integers(prefix + "uid")) {
    selection.uids.push_back(static_cast<std::uint32_t>(uid));
  }
  selection.trees = parameters.processes(prefix + "tree");
  return selection;
}

/// A window's resolved edges; empty if they are not given.
struct Edges {
  std::optional<WallTime> from;
  std::optional<WallTime> to;
};

Edges edges_of(const Parameters& parameters, const std::string& prefix, WallTime now) {
  const std::optional<GivenTime> from = parameters.time(prefix + "from");
  const std::optional<GivenTime> to = parameters.time(prefix + "to");
  Edges edges;
  if (from) edges.from = from->moment;
  if (to) edges.to = end_meant(*to, from, now);
  return edges;
}

store::NameMatcher matcher_of(const Parameters& parameters, std::string_view name) {
  auto pattern = parameters.pattern(name);
  if (!pattern) return {};
  return [pattern = std::move(*pattern)](std::string_view text) { return pattern.matches(text); };
}

}  // namespace

store::Group group_of(std::string_view name) {
  if (name == "process") return store::Group::kProcess;
  if (name == "thread") return store::Group::kThread;
  if (name == "comm") return store::Group::kComm;
  if (name == "program") return store::Group::kProgram;
  if (name == "exe") return store::Group::kExecutable;
  if (name == "unit") return store::Group::kUnit;
  if (name == "container") return store::Group::kContainer;
  if (name == "user") return store::Group::kUser;
  if (name == "tree") return store::Group::kTree;
  return store::Group::kNone;
}

std::optional<std::int64_t> wait_ns(const Parameters& parameters) {
  if (!parameters.takes("seconds") || parameters.given("from") || parameters.given("to")) return std::nullopt;
  if (const auto seconds = parameters.duration_ns("seconds")) return seconds;
  return parameters.default_duration_ns("seconds");
}

std::variant<AskedWindow, Problem> asked_window_of(const Parameters& parameters, const Moments& moments) {
  if (const auto wait = wait_ns(parameters)) {
    return AskedWindow{{moments.asked, {moments.asked.ns + *wait}}};
  }
  const Edges given = edges_of(parameters, "", moments.now);
  std::optional<WallTime> from = given.from;
  std::optional<WallTime> to = given.to;
  if (parameters.takes("seconds") && parameters.given("seconds")) {
    if (from && to) {
      return bad_parameter("seconds", "The window has a start and an end already. Leave out one of from, to, seconds.");
    }
    const std::int64_t length_ns = *parameters.duration_ns("seconds");
    if (from) {
      to = WallTime{from->ns + length_ns};
    } else {
      from = WallTime{to->ns - length_ns};
    }
  }
  auto window = resolve_window(from, to, moments.now);
  if (!window) return bad_parameter("from", window.error().message());
  return AskedWindow{*window, !from};
}

store::WallWindow cut_window(const AskedWindow& asked, const store::Snapshot& snapshot) {
  store::WallWindow window = asked.window;
  if (!asked.has_default_start) return window;
  const auto retained = store::retained_window(snapshot);
  if (retained && retained->from < window.to) window.from = std::max(window.from, retained->from);
  return window;
}

std::variant<store::WallWindow, Problem> base_window_of(const Parameters& parameters, const Moments& moments,
                                                        const store::WallWindow& window) {
  const std::int64_t length_ns = window.to.ns - window.from.ns;
  if (const std::optional<std::int64_t> ago_ns = parameters.duration_ns("base_ago")) {
    if (parameters.given("base_from") || parameters.given("base_to")) {
      return bad_parameter("base_ago",
                           "The window to compare with is given twice. Leave out base_ago, or base_from and base_to.");
    }
    return store::WallWindow{{window.from.ns - *ago_ns}, {window.to.ns - *ago_ns}};
  }
  const Edges given = edges_of(parameters, "base_", moments.now);
  if (!given.from && !given.to && selects(parameters, "base_")) return window;
  WallTime to = given.to.value_or(given.from ? WallTime{given.from->ns + length_ns} : window.from);
  const WallTime from = given.from.value_or(WallTime{to.ns - length_ns});
  if (from < moments.now) to = std::min(to, moments.now);
  if (from >= to) {
    return bad_parameter("base_from", "Nothing lies between base_from (" + format_time(from) + ") and base_to (" +
                                          format_time(to) + "). base_from must be before base_to.");
  }
  return store::WallWindow{from, to};
}

std::variant<std::optional<store::SecondPart>, Problem> part_of(const Parameters& parameters,
                                                                const std::string& prefix) {
  const auto from_ms = parameters.number(prefix + "offset_from");
  const auto to_ms = parameters.number(prefix + "offset_to");
  if (!from_ms && !to_ms) return std::optional<store::SecondPart>{};
  const auto in_ns = [](double ms) { return static_cast<std::int64_t>(std::llround(ms * kNsPerMs)); };
  const store::SecondPart part{in_ns(from_ms.value_or(0)), in_ns(to_ms.value_or(1000))};
  if (part.from_ns >= part.to_ns) {
    return bad_parameter(prefix + "offset_from", "No part of a second lies between " + prefix + "offset_from and " +
                                                     prefix + "offset_to. The first must be less.");
  }
  return std::optional(part);
}

store::Selection selection_of(const Parameters& parameters, const store::WallWindow& window) {
  return read_selection(parameters, "", window);
}

store::Selection off_cpu_selection_of(const Parameters& parameters, const store::WallWindow& window) {
  store::Selection selection;
  selection.window = window;
  selection.processes = parameters.processes("pid");
  for (const std::int64_t tid : parameters.integers("tid")) selection.tids.push_back(static_cast<std::int32_t>(tid));
  selection.comms = parameters.texts("comm");
  selection.side = side_of(parameters.choice("side"));
  return selection;
}

store::Selection base_selection_of(const Parameters& parameters, const store::WallWindow& window) {
  return read_selection(parameters, selects(parameters, "base_") ? "base_" : "", window);
}

store::Snapshot measured_snapshot(const Parameters& parameters, const store::Snapshot& snapshot) {
  if (!parameters.takes("measure")) return snapshot;
  const std::string_view measure = parameters.choice("measure");
  if (measure == "cpu") return snapshot;
  return store::measured(snapshot, measure == "wait" ? store::Measure::kWait : store::Measure::kWall,
                         parameters.choice("idle") == "hide");
}

std::vector<std::string> selecting_parameters(const Parameters& parameters, const std::string& prefix) {
  std::vector<std::string> names;
  const std::string own = selects(parameters, prefix) ? prefix : "";
  for (const std::string_view selector : kSelectors) {
    const std::string name = own + std::string(selector);
    const bool leaves_out = selector != "side" || side_of(parameters.choice(name)) != store::Side::kBoth;
    if (parameters.given(name) && leaves_out) names.push_back(name);
  }
  return names;
}

store::ProfileOptions options_of(const Parameters& parameters) {
  store::ProfileOptions options;
  options.inlines = parameters.flag("inlines");
  options.interpreter = parameters.choice("interpreter") == "show";
  options.full_names = parameters.choice("names") == "full";
  options.focus = matcher_of(parameters, "focus");
  options.ignore = matcher_of(parameters, "ignore");
  options.hide = matcher_of(parameters, "hide");
  if (!parameters.takes("group")) return options;
  if (parameters.given("group")) options.group = group_of(parameters.choice("group"));
  options.delimited = parameters.flag("delimited");
  options.annotate = parameters.flag("annotate");
  options.lines = parameters.flag("lines");
  options.root = parameters.texts("root");
  options.min_percent = parameters.number("min_percent").value_or(0);
  options.max_nodes = static_cast<std::size_t>(parameters.integer("max_nodes").value_or(0));
  return options;
}

}  // namespace flamed::api
