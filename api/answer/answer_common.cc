// SPDX-License-Identifier: Apache-2.0
#include "api/answer/answer_common.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/question/question.h"
#include "api/render/column_writer.h"
#include "api/text/time_expression.h"
#include "store/query/query.h"
#include "store/query/slot_selection.h"
#include "store/query/usage.h"

namespace flamed::api {
namespace {

constexpr std::int64_t kDeadlineNs = 20 * kNsPerSecond;
constexpr std::uint64_t kMostNodes = 4U << 20;
/// Pairs of thread and stack: a day of a busy host has tens of millions.
constexpr std::uint64_t kMostVisits = 2'000'000'000;
/// For look_further().
constexpr std::int64_t kFurtherNs = 2 * kNsPerSecond;
/// Answers have all samples up to a second ago, unless ingest is some seconds behind.
constexpr std::int64_t kSettledNs = 10 * kNsPerSecond;

/// Each may need a read of /proc.
constexpr std::size_t kMostAccounts = 512;

std::string describe(const store::ProcessSelector& process) {
  std::string text = "process " + std::to_string(process.pid);
  if (process.start_ticks) text += "@" + std::to_string(*process.start_ticks);
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<Problem> check_processes(const store::Selection& selection, const store::Snapshot& snapshot,
                                       const Sources& sources, const std::string& prefix) {
  for (const auto* list : {&selection.processes, &selection.trees}) {
    for (const store::ProcessSelector& process : *list) {
      if (store::knows(snapshot, process)) continue;
      // With a start time, a process without samples can't be distinguished from an earlier one with its pid.
      if (!process.start_ticks && sources.user_of(process.pid)) continue;
      // The same for a missing process and for another user's.
      const std::string parameter = prefix + (list == &selection.trees ? "tree" : "pid");
      return unknown_process(parameter, "flamed has never seen " + describe(process) +
                                            (store::only_user(snapshot) ? " of yours" : "") +
                                            ", or no longer remembers it. /processes lists who used CPU in a window; "
                                            "leave " +
                                            parameter + " out" + (prefix.empty() ? " for the whole machine." : "."));
    }
  }
  return std::nullopt;
}

store::FrameNamer& namer_of(const AnswerContext& context, const ReadyQuestion& question) {
  return question.namer != nullptr ? *question.namer : context.sources.namer();
}

std::variant<WindowView, Problem> view_window(const AnswerContext& context, const store::Detail& detail) {
  const auto asked = asked_window_of(context.parameters, context.moments);
  if (const auto* problem = std::get_if<Problem>(&asked)) return *problem;
  const auto& window = std::get<AskedWindow>(asked).window;
  store::Snapshot snapshot =
      context.sources.with_history(context.sources.await_snapshot(), std::span(&window, 1), detail);
  const store::WallWindow cut = cut_window(std::get<AskedWindow>(asked), snapshot);
  return WindowView{std::move(snapshot), cut};
}

std::variant<ReadyQuestion, Problem> prepare(const AnswerContext& context, const store::Detail& detail) {
  auto view = view_window(context, detail);
  if (auto* problem = std::get_if<Problem>(&view)) return std::move(*problem);
  auto& [snapshot, window] = std::get<WindowView>(view);
  ReadyQuestion question{measured_snapshot(context.parameters, snapshot), selection_of(context.parameters, window)};
  if (auto problem = check_processes(question.selection, question.snapshot, context.sources))
    return std::move(*problem);
  if (auto problem = narrow_to_part(question.selection, question, context)) return std::move(*problem);
  return question;
}

store::Detail by_stack(const AnswerContext& context) {
  const store::Selection selection = selection_of(context.parameters, {});
  const auto part = part_of(context.parameters);
  const auto* narrowed = std::get_if<std::optional<store::SecondPart>>(&part);
  const bool is_by_thread = context.parameters.takes("group") && (context.parameters.choice("group") == "thread" ||
                                                                  context.parameters.choice("group") == "comm");
  return {.only_minutes = !selection.tids.empty() || !selection.comms.empty() || is_by_thread || narrowed == nullptr ||
                          narrowed->has_value()};
}

store::Detail by_process(const AnswerContext& context, std::int64_t step_ns) {
  const store::Detail detail = by_stack(context);
  if (detail.only_minutes || context.parameters.choice("measure") != "cpu") return detail;
  const store::Selection selection = selection_of(context.parameters, {});
  return {.only_processes = true,
          .each_process = !selection.processes.empty() || !selection.trees.empty(),
          .step_ns = step_ns};
}

std::optional<Problem> narrow_to_part(store::Selection& selection, const ReadyQuestion& question,
                                      const AnswerContext& context, const std::string& prefix) {
  auto part = part_of(context.parameters, prefix);
  if (auto* problem = std::get_if<Problem>(&part)) return std::move(*problem);
  selection.part = std::get<std::optional<store::SecondPart>>(part);
  if (!selection.part || store::keeps_single_samples(question.snapshot, selection.window)) return std::nullopt;
  return no_single_samples(
      "which part of a second a sample was taken in is known only of time of which samples are kept one by one, and of "
      "this window only the minutes' counts are: ask for a later window");
}

std::optional<Problem> check_format(const AnswerContext& context, std::string_view format) {
  constexpr std::array<std::string_view, 3> kOnlyOfCpu{"perf-script", "samples", "summary"};
  if (context.parameters.choice("measure") == "cpu") return std::nullopt;
  const bool is_of_services = format == "pyroscope" || format.starts_with("otlp");
  if (is_of_services && context.parameters.choice("measure") == "wall") {
    return bad_parameter("measure", "The format " + std::string(format) + " is of one measure: ask for cpu or wait.");
  }
  if (std::find(kOnlyOfCpu.begin(), kOnlyOfCpu.end(), format) == kOnlyOfCpu.end()) return std::nullopt;
  return bad_parameter("format", "The format " + std::string(format) +
                                     " is only of CPU time. Leave measure out, or ask for another format.");
}

store::QueryBudget budget_for(const Sources& sources) {
  store::QueryLimits limits;
  limits.visits = kMostVisits;
  limits.nodes = kMostNodes;
  limits.deadline = MonotonicTime{sources.clock().monotonic().ns + kDeadlineNs};
  return {limits, &sources.clock()};
}

namespace {

/// Of minutes that are only on disk, what was written with them.
CpuAccount machine_cpu(const store::WallWindow& window, const ReadyQuestion& question, const Sources& sources) {
  const store::KeptCpu kept = store::kept_cpu(question.snapshot, window);
  if (!kept.ns) return {{}, "the kernel's accounts were not written with some of the minutes on disk"};
  if (kept.rest.to <= kept.rest.from) return {kept.ns, {}};
  CpuAccount cpu = sources.machine_cpu(kept.rest);
  if (cpu.ns) *cpu.ns += *kept.ns;
  return cpu;
}

/// Of waiting time, or of all time of threads.
void add_coverage_of_threads(store::Coverage& coverage, const store::AnswerFacts& facts, const ReadyQuestion& question,
                             const Sources& sources) {
  const store::Selection& selection = question.selection;
  if (selection.is_narrowed() || selection.side != store::Side::kBoth) {
    coverage.reason = "threads are counted for the whole machine: ask without a selection";
    return;
  }
  if (selection.part) {
    coverage.reason = "threads are not counted by parts of seconds";
    return;
  }
  ThreadTime threads = sources.thread_time(facts.used);
  coverage.reason = std::move(threads.reason);
  coverage.thread_ns = threads.ns;
  coverage.thread_error_ns = threads.error_ns;
  if (!threads.ns) return;
  auto expected_ns = static_cast<double>(*threads.ns);
  if (facts.measure == store::Measure::kWait) {
    CpuAccount cpu = machine_cpu(facts.used, question, sources);
    coverage.reason = std::move(cpu.reason);
    coverage.cpu_ns_accounted = cpu.ns;
    if (!cpu.ns) return;
    expected_ns -= static_cast<double>(*cpu.ns);
  }
  if (expected_ns <= 0) {
    coverage.reason = "no thread is known to have existed";
    return;
  }
  // Threads that wait for work exist, too.
  store::QueryBudget budget = budget_for(sources);
  const auto stored = store::process_usage(store::with_idle(question.snapshot), selection, budget);
  if (stored)
    coverage.share = static_cast<double>(stored->total_ns) / expected_ns;
  else
    coverage.reason = stored.error().message();
}

}  // namespace

void add_coverage(store::AnswerFacts& facts, const ReadyQuestion& question, const Sources& sources) {
  const store::Selection& selection = question.selection;
  store::Coverage& coverage = facts.coverage.emplace();
  if (facts.measure != store::Measure::kCpu) return add_coverage_of_threads(coverage, facts, question, sources);
  if (selection.side != store::Side::kBoth) {
    coverage.reason = "the kernel's accounts are compared with samples of both sides: leave side out";
    return;
  }
  if (!selection.tids.empty() || !selection.comms.empty()) {
    coverage.reason = "the kernel's accounts are kept for the whole machine and for processes, not for threads";
    return;
  }
  if (selection.part) {
    coverage.reason = "the kernel's accounts are not kept for parts of seconds";
    return;
  }
  if (facts.used.to <= facts.used.from) {
    coverage.reason = "no part of the window is retained";
    return;
  }
  CpuAccount sum{0, {}};
  if (!selection.is_narrowed() && !facts.only_user) {
    sum = machine_cpu(facts.used, question, sources);
  } else {
    // For units, containers and cgroups, too, the account is the sum of the processes, since samples belong to them by
    // process. The cgroup's own account includes processes that moved in and out, and those that were never sampled.
    const auto processes = store::selected_processes(question.snapshot, selection, kMostAccounts + 1);
    if (processes.empty()) sum = {{}, "no sample of the selection is retained"};
    if (processes.size() > kMostAccounts) sum = {{}, "more than " + std::to_string(kMostAccounts) + " processes"};
    for (std::size_t i = 0; i < processes.size() && sum.ns; ++i) {
      CpuAccount account = sources.process_cpu(facts.used, processes[i]);
      if (account.ns) *account.ns += *sum.ns;
      sum = std::move(account);
    }
  }
  coverage.cpu_ns_accounted = sum.ns;
  coverage.reason = sum.reason;
  if (!sum.ns) return;
  if (*sum.ns == 0) {
    coverage.reason = "the kernel accounted no CPU time";
    return;
  }
  const double sampled_ns = static_cast<double>(facts.quality.stored()) * static_cast<double>(facts.period_ns);
  coverage.share = sampled_ns / static_cast<double>(*sum.ns);
}

void look_further(store::AnswerFacts& facts, std::uint64_t samples, const ReadyQuestion& question,
                  const AnswerContext& context, const store::ProfileOptions& options, const std::string& prefix) {
  const auto retained = store::retained_window(question.snapshot);
  if (samples != 0 || !retained) return;
  const Clock& clock = context.sources.clock();
  store::QueryLimits limits;
  limits.visits = kMostVisits / 10;
  limits.nodes = kMostNodes;
  limits.deadline = MonotonicTime{clock.monotonic().ns + kFurtherNs};
  store::QueryBudget budget(limits, &clock);
  facts.matched_ever =
      store::matches_ever(question.snapshot, question.selection, options, namer_of(context, question), budget);
  if (facts.matched_ever.value_or(true)) return;
  std::vector<std::string> names = selecting_parameters(context.parameters, prefix);
  const std::string_view what_there_is = names.empty()
                                             ? "/profile?format=top-text lists the functions that were sampled."
                                             : "/threads lists what was sampled.";
  if (options.focus) names.emplace_back("focus");
  if (options.ignore) names.emplace_back("ignore");
  if (!options.root.empty()) names.emplace_back("root");
  std::string all = "all that is retained";
  if (facts.only_user) all += " of processes of uid " + std::to_string(*facts.only_user);
  all += ", from " + store::to_text(retained->from) + " on";
  if (names.empty()) {
    facts.warnings.push_back("There is no sample in " + all + ".");
    return;
  }
  std::string listed = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) listed += (i + 1 == names.size() ? " and " : ", ") + names[i];
  facts.warnings.push_back("No sample in " + all + ", matches " + listed + ": another window would be as empty. " +
                           std::string(what_there_is));
}

Response settle(Response response, const store::WallWindow& used, const AnswerContext& context) {
  response.settled = used.to.ns <= context.moments.now.ns - kSettledNs;
  return response;
}

SummaryFacts summary_facts_of(const ReadyQuestion& question, const store::ProfileOptions& options,
                              const Sources& sources) {
  const bool is_filtered = options.focus || options.ignore || !options.root.empty();
  return {question.selection, options.group.value_or(store::Group::kNone), sources.cpus(), is_filtered};
}

void add_fact_headers(Response& response, const store::AnswerFacts& facts, std::uint64_t samples, double symbolised) {
  const auto share = [&](std::string_view name, double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "=%.3f", value);
    response.headers.back().second.append(", ").append(name).append(text.data());
  };
  const store::Quality& quality = facts.quality;
  response.headers.emplace_back("Flamed-Window", format_time(facts.used.from) + "/" + format_time(facts.used.to));
  response.headers.emplace_back("Flamed-Quality", "samples=" + std::to_string(samples) +
                                                      ", truncated=" + std::to_string(quality.truncated_total()) +
                                                      ", lost=" + std::to_string(quality.lost_total()));
  if (quality.guessed() != 0) {
    response.headers.back().second += ", guessed=" + std::to_string(quality.guessed());
  }
  share("symbolised", symbolised);
  if (facts.coverage && facts.coverage->share) share("coverage", *facts.coverage->share);
  if (facts.only_user) response.headers.emplace_back("Flamed-Visible", "uid=" + std::to_string(*facts.only_user));
  if (facts.warnings.empty()) return;
  std::string warnings;
  for (const std::string& warning : facts.warnings) warnings += (warnings.empty() ? "" : " ") + warning;
  for (char& c : warnings) {
    // A header is one line of ASCII.
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) c = '?';
  }
  response.headers.emplace_back("Flamed-Warnings", std::move(warnings));
}

std::string_view format_of(const AnswerContext& context) {
  if (context.parameters.given("format")) return context.parameters.choice("format");
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kTypes{{
      {"application/json", "flamegraph"},
      {"*/*", "flamegraph"},
      {"application/*", "flamegraph"},
      {"text/plain", "folded"},
      {"application/x-protobuf", "pprof"},
      {"application/vnd.google.protobuf", "pprof"},
      {kBinaryColumnsType, "columns-binary"},
  }};
  std::string_view rest = context.accept;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string_view type = rest.substr(0, comma);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    type = trimmed(type.substr(0, type.find(';')));
    for (const auto& [media, format] : kTypes) {
      if (media == type) return format;
    }
  }
  return context.parameters.choice("format");
}

}  // namespace flamed::api
