// SPDX-License-Identifier: Apache-2.0
#include "api/querier/calls.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "api/querier/answers.h"
#include "api/querier/flame_levels.h"
#include "api/querier/label_selector.h"
#include "api/querier/labels.h"
#include "store/query/process_series.h"
#include "store/query/query.h"

namespace flamed::api {
namespace {

/// 2200-01-01: nanoseconds of it still fit.
constexpr std::int64_t kLatestMs = 7'258'118'400'000;
constexpr std::int64_t kDefaultMaxNodes = 8192;
/// What matching a process costs a budget for each condition: some microseconds, as for so many stacks.
constexpr std::uint64_t kVisitsPerCondition = 100;
constexpr std::int64_t kMostNodes = 1'000'000;

template <typename T>
using Outcome = std::variant<T, Problem>;
/// What an Outcome has instead of a value; null: it has the value.
template <typename T>
Problem* problem_in(Outcome<T>& outcome) {
  return std::get_if<Problem>(&outcome);
}

/// Of a query that may have stopped matching processes.
template <typename T>
Result<T> unless_exhausted(Result<T> answer, const CallContext& context) {
  if (answer && context.budget.exhausted()) return context.budget.error();
  return answer;
}

Problem problem_of(const Error& error) {
  return error.code() == E2BIG || error.code() == ETIMEDOUT ? too_costly(error.message())
                                                            : internal_error(error.message());
}

/// The time that a call is about, and a snapshot with it.
struct View {
  store::Snapshot snapshot;
  store::WallWindow window;
};

Outcome<View> view_of(const CallRequest& request, const CallContext& context) {
  if (request.start_ms > request.end_ms) return bad_request("The start is after the end.");
  const auto time_of = [](std::int64_t ms) { return WallTime{std::clamp<std::int64_t>(ms, 0, kLatestMs) * kNsPerMs}; };
  store::WallWindow window{time_of(request.start_ms), time_of(request.end_ms)};
  if (window.from < context.now) window.to = std::min(window.to, context.now);
  store::Snapshot snapshot = context.sources.await_snapshot();
  return View{context.sources.with_history(snapshot, std::span(&window, 1), {}), window};
}

/// Without times, all that is in memory.
Outcome<View> view_of_labels(const CallRequest& request, const CallContext& context) {
  if (request.start_ms != 0 || request.end_ms != 0) return view_of(request, context);
  store::Snapshot snapshot = context.sources.await_snapshot();
  const auto retained = store::retained_window(snapshot);
  return View{std::move(snapshot), retained.value_or(store::WallWindow{context.now, context.now})};
}

/// One of several selectors.
using Selectors = std::vector<LabelSelector>;

Outcome<Selectors> selectors_of(std::span<const std::string> texts) {
  Selectors selectors;
  for (const std::string& text : texts) {
    Result<LabelSelector> selector = LabelSelector::parse(text);
    if (!selector) return bad_request("Can't use a label selector: " + selector.error().message() + ".");
    selectors.push_back(std::move(*selector));
  }
  return selectors;
}

/// The samples of a type in the window, of processes that fit one of the selectors, or of all if there is none.
store::Selection selection_of(const store::WallWindow& window, const Selectors& selectors, const ProfileType& type,
                              const CallContext& context) {
  store::Selection selection;
  selection.window = window;
  const bool is_narrowed = std::any_of(selectors.begin(), selectors.end(), [](const LabelSelector& selector) {
    return !selector.metric().empty() || !selector.matchers().empty();
  });
  // Without a function the store may use sums that it has made before.
  if (!is_narrowed) return selection;
  std::uint64_t visits = kVisitsPerCondition;
  for (const LabelSelector& selector : selectors) visits += selector.matchers().size() * kVisitsPerCondition;
  selection.accepts = [&selectors, &type, &context, visits](const store::ProcessInfo& process) {
    // Exhausted, it makes the whole query fail.
    if (!context.budget.visit(visits)) return false;
    const ProcessLabels labels({process, type, context.host});
    return std::any_of(selectors.begin(), selectors.end(),
                       [&](const LabelSelector& selector) { return labels.match(selector); });
  };
  return selection;
}

store::Snapshot measured(const store::Snapshot& snapshot, const ProfileType& type) {
  if (type.measure == store::Measure::kCpu) return snapshot;
  return store::measured(snapshot, type.measure, /*hides_idle=*/true);
}

/// visit(type, const ProcessUsage&) for each process of each type that fits.
template <typename F>
std::optional<Problem> for_each_process(const CallRequest& request, const CallContext& context, F&& visit) {
  auto view = view_of_labels(request, context);
  if (auto* problem = problem_in(view)) return std::move(*problem);
  auto selectors = selectors_of(request.matchers);
  if (auto* problem = problem_in(selectors)) return std::move(*problem);
  const auto& [snapshot, window] = std::get<View>(view);
  for (const ProfileType& type : profile_types()) {
    const auto selection = selection_of(window, std::get<Selectors>(selectors), type, context);
    const auto usage =
        unless_exhausted(store::process_usage(measured(snapshot, type), selection, context.budget), context);
    if (!usage) return problem_of(usage.error());
    for (const store::ProcessUsage& process : usage->rows) visit(type, process);
  }
  return std::nullopt;
}

Labels labels_of(const ProcessLabels& process, std::span<const std::string> names) {
  Labels labels;
  for (const std::string& name : names) {
    std::string value = process.value_of(name);
    if (!value.empty()) labels.push_back({name, std::move(value)});
  }
  return labels;
}

std::vector<std::string> all_label_names() {
  const std::vector<std::string_view> names = label_names();
  return {names.begin(), names.end()};
}

Outcome<NamesAnswer> names_of_labels(const CallRequest& request, const CallContext& context) {
  const std::vector<std::string> names = all_label_names();
  std::set<std::string> found;
  const auto collect = [&](const ProfileType& type, const store::ProcessUsage& process) {
    for (Label& label : labels_of(ProcessLabels({process.info, type, context.host}), names)) {
      found.insert(std::move(label.name));
    }
  };
  if (auto problem = for_each_process(request, context, collect)) return std::move(*problem);
  return NamesAnswer{{found.begin(), found.end()}};
}

Outcome<NamesAnswer> values_of_label(const CallRequest& request, const CallContext& context) {
  if (request.label.empty()) return bad_request("The name of the label is missing.");
  std::set<std::string> found;
  const auto collect = [&](const ProfileType& type, const store::ProcessUsage& process) {
    found.insert(ProcessLabels({process.info, type, context.host}).value_of(request.label));
  };
  if (auto problem = for_each_process(request, context, collect)) return std::move(*problem);
  found.erase("");
  return NamesAnswer{{found.begin(), found.end()}};
}

/// Groups by labels, those with most CPU time first.
class LabelGroups {
 public:
  explicit LabelGroups(std::vector<std::string> names) : names_(std::move(names)) {
    std::sort(names_.begin(), names_.end());
    names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
  }

  void add(const ProcessLabels& labels, const store::ProcessUsage& process) {
    Labels group = labels_of(labels, names_);
    const std::size_t index = index_of_.try_emplace(std::move(group), groups_.size()).first->second;
    if (index == groups_.size()) groups_.emplace_back();
    groups_[index].cpu_ns += process.cpu_ns;
    groups_[index].processes.push_back(process.info.id);
  }

  struct Group {
    Labels labels{};
    std::vector<ProcessId> processes{};
    std::uint64_t cpu_ns = 0;
  };
  [[nodiscard]] std::vector<Group> largest(std::size_t most) && {
    for (const auto& [labels, index] : index_of_) groups_[index].labels = labels;
    std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
      return a.cpu_ns != b.cpu_ns ? a.cpu_ns > b.cpu_ns : a.labels < b.labels;
    });
    if (groups_.size() > most) groups_.resize(most);
    return std::move(groups_);
  }

 private:
  std::vector<std::string> names_;
  std::map<Labels, std::size_t> index_of_;
  std::vector<Group> groups_;
};

Outcome<LabelSetsAnswer> label_sets(const CallRequest& request, const CallContext& context) {
  LabelGroups groups(request.labels.empty() ? all_label_names() : request.labels);
  const auto collect = [&](const ProfileType& type, const store::ProcessUsage& process) {
    groups.add(ProcessLabels({process.info, type, context.host}), process);
  };
  if (auto problem = for_each_process(request, context, collect)) return std::move(*problem);
  LabelSetsAnswer answer;
  for (LabelGroups::Group& group : std::move(groups).largest(kMostSeries)) {
    if (!group.labels.empty()) answer.sets.push_back(std::move(group.labels));
  }
  return answer;
}

/// What a call that selects samples is about.
struct Asked {
  View view;
  Selectors selectors;
  const ProfileType* type;  ///< null: one that there are no samples of
};

Outcome<Asked> asked_of(const CallRequest& request, const CallContext& context) {
  if (!is_profile_type_id(request.profile_type)) {
    return bad_request("The profile type is not NAME:TYPE:UNIT:PERIOD_TYPE:PERIOD_UNIT. Use " +
                       std::string(profile_types().front().id) + ".");
  }
  if (request.start_ms == 0 && request.end_ms == 0) return bad_request("The start and the end are missing.");
  auto selectors = selectors_of(std::span(&request.selector, 1));
  if (auto* problem = problem_in(selectors)) return std::move(*problem);
  auto view = view_of(request, context);
  if (auto* problem = problem_in(view)) return std::move(*problem);
  const ProfileType* const type = find_profile_type(request.profile_type);
  auto& [snapshot, window] = std::get<View>(view);
  if (type != nullptr) snapshot = measured(snapshot, *type);
  return Asked{std::get<View>(std::move(view)), std::get<Selectors>(std::move(selectors)), type};
}

/// The points of the steps that have samples.
std::vector<SeriesPoint> points_of(const store::Steps& steps, const std::vector<std::uint64_t>& ns, WallTime end) {
  std::vector<SeriesPoint> points;
  for (std::size_t step = 0; step < ns.size(); ++step) {
    if (ns[step] == 0) continue;
    const std::int64_t step_end_ns = steps.start.ns + static_cast<std::int64_t>(step + 1) * steps.step_ns;
    points.push_back({static_cast<double>(ns[step]), std::min(step_end_ns, end.ns) / kNsPerMs});
  }
  return points;
}

Outcome<std::int64_t> step_ns_of(const CallRequest& request, const store::WallWindow& window) {
  constexpr double kShortestS = 0.001;
  if (!std::isfinite(request.step_s) || request.step_s < kShortestS) {
    return bad_request("The step is missing. It is a number of seconds.");
  }
  const std::int64_t length_ns = std::max<std::int64_t>(window.to.ns - window.from.ns, kNsPerMs);
  // One step is enough for any longer one.
  if (request.step_s * kNsPerSecond >= static_cast<double>(length_ns)) return length_ns;
  return std::int64_t{std::lround(request.step_s * 1000)} * kNsPerMs;
}

Outcome<SeriesAnswer> series(const CallRequest& request, const CallContext& context) {
  auto asked = asked_of(request, context);
  if (auto* problem = problem_in(asked)) return std::move(*problem);
  const auto& [view, selectors, type] = std::get<Asked>(asked);
  auto step_ns = step_ns_of(request, view.window);
  if (auto* problem = problem_in(step_ns)) return std::move(*problem);
  if (request.limit < 0) return bad_request("The limit is negative.");
  SeriesAnswer answer;
  if (type == nullptr) return answer;

  const store::Selection selection = selection_of(view.window, selectors, *type, context);
  const auto usage = unless_exhausted(store::process_usage(view.snapshot, selection, context.budget), context);
  if (!usage) return problem_of(usage.error());
  LabelGroups by_labels(request.labels);
  for (const store::ProcessUsage& process : usage->rows) {
    by_labels.add(ProcessLabels({process.info, *type, context.host}), process);
  }
  const std::size_t limit =
      request.limit == 0 ? kMostSeries : std::min(static_cast<std::size_t>(request.limit), kMostSeries);
  std::vector<LabelGroups::Group> groups = std::move(by_labels).largest(limit);
  std::map<ProcessId, std::size_t> group_of;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const ProcessId& process : groups[i].processes) group_of.emplace(process, i);
  }
  const auto find_group = [&](const ProcessId& id) {
    const auto found = group_of.find(id);
    return found == group_of.end() ? std::nullopt : std::optional(found->second);
  };
  const auto summed = unless_exhausted(store::process_series(view.snapshot, selection, std::get<std::int64_t>(step_ns),
                                                             groups.size(), find_group, context.budget),
                                       context);
  if (!summed) return problem_of(summed.error());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    answer.series.push_back({std::move(groups[i].labels), points_of(summed->steps, summed->ns[i], view.window.to)});
  }
  return answer;
}

Outcome<LevelsAnswer> flame_graph(const CallRequest& request, const CallContext& context) {
  auto asked = asked_of(request, context);
  if (auto* problem = problem_in(asked)) return std::move(*problem);
  if (request.max_nodes < 0) return bad_request("maxNodes is negative.");
  const auto& [view, selectors, type] = std::get<Asked>(asked);
  if (type == nullptr) return LevelsAnswer{{"total"}, {{0, 0, 0, 0}}};
  const store::Selection selection = selection_of(view.window, selectors, *type, context);
  store::ProfileOptions options;
  options.group = store::Group::kNone;
  options.max_nodes =
      static_cast<std::size_t>(request.max_nodes == 0 ? kDefaultMaxNodes : std::min(request.max_nodes, kMostNodes));
  const auto profile = unless_exhausted(
      store::build_profile(view.snapshot, selection, options, context.sources.namer(), context.budget), context);
  if (!profile) return problem_of(profile.error());
  return flame_levels(*profile);
}

StatsAnswer stats(const CallContext& context) {
  const auto retained = store::retained_window(context.sources.await_snapshot());
  std::optional<WallTime> oldest = context.sources.health().oldest;  // in memory or on disk
  if (retained && (!oldest || retained->from < *oldest)) oldest = retained->from;
  if (!oldest) return {};
  return {true, oldest->ns / kNsPerMs, (retained ? retained->to : context.now).ns / kNsPerMs};
}

template <typename Answer>
Outcome<std::string> encoded(Outcome<Answer> outcome, CallEncoding encoding) {
  if (auto* problem = problem_in(outcome)) return std::move(*problem);
  return encode(std::get<Answer>(outcome), encoding);
}

}  // namespace

Outcome<std::string> answer_call(CallMethod method, CallEncoding encoding, const CallRequest& request,
                                 const CallContext& context) {
  switch (method) {
    case CallMethod::kProfileTypes:
      return encode(TypesAnswer{profile_types()}, encoding);
    case CallMethod::kLabelNames:
      return encoded(names_of_labels(request, context), encoding);
    case CallMethod::kLabelValues:
      return encoded(values_of_label(request, context), encoding);
    case CallMethod::kSeries:
      return encoded(label_sets(request, context), encoding);
    case CallMethod::kSelectSeries:
      return encoded(series(request, context), encoding);
    case CallMethod::kSelectMergeStacktraces:
      return encoded(flame_graph(request, context), encoding);
    case CallMethod::kGetProfileStats:
      return encode(stats(context), encoding);
  }
  std::abort();
}

}  // namespace flamed::api
