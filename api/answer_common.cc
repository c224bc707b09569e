// SPDX-License-Identifier: Apache-2.0
#include "api/answer_common.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "api/time_expression.h"
#include "store/query.h"

namespace flamed::api {
namespace {

constexpr std::int64_t kDeadlineNs = 20 * kNsPerSecond;
constexpr std::uint64_t kMostNodes = 4U << 20;
/// Pairs of thread and stack: a day of a busy host has tens of millions.
constexpr std::uint64_t kMostVisits = 2'000'000'000;
/// Samples are drained once a second; ingest may be some seconds behind.
constexpr std::int64_t kSettledNs = 10 * kNsPerSecond;

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
                                       const Sources& sources) {
  for (const auto* list : {&selection.processes, &selection.trees}) {
    for (const store::ProcessSelector& process : *list) {
      if (store::knows(snapshot, process)) continue;
      // Told by its start, a process that no sample names cannot be told from an earlier one with its pid.
      if (!process.start_ticks && sources.is_running(process.pid)) continue;
      return unknown_process("flamed has never seen " + describe(process) +
                             ", or no longer remembers it. /processes lists who used CPU in a window; "
                             "leave " +
                             (list == &selection.trees ? "tree" : "pid") + " out for the whole machine.");
    }
  }
  return std::nullopt;
}

std::variant<ReadyQuestion, Problem> prepare(const AnswerContext& context) {
  ReadyQuestion question{context.sources.snapshot(), {}};
  auto window = window_of(context.parameters, context.moments, question.snapshot);
  if (auto* problem = std::get_if<Problem>(&window)) return std::move(*problem);
  question.selection = selection_of(context.parameters, std::get<store::WallWindow>(window));
  if (auto problem = check_processes(question.selection, question.snapshot, context.sources))
    return std::move(*problem);
  return question;
}

store::QueryBudget budget_for(const Sources& sources) {
  store::QueryLimits limits;
  limits.visits = kMostVisits;
  limits.nodes = kMostNodes;
  limits.deadline = MonotonicTime{sources.clock().monotonic().ns + kDeadlineNs};
  return {limits, &sources.clock()};
}

Response settle(Response response, const store::WallWindow& used, const AnswerContext& context) {
  response.settled = used.to.ns <= context.moments.now.ns - kSettledNs;
  return response;
}

void add_fact_headers(Response& response, const store::AnswerFacts& facts, std::uint64_t samples) {
  const store::Quality& quality = facts.quality;
  response.headers.emplace_back("Flamed-Window", format_time(facts.used.from) + "/" + format_time(facts.used.to));
  response.headers.emplace_back("Flamed-Quality", "samples=" + std::to_string(samples) +
                                                      ", truncated=" + std::to_string(quality.truncated_total()) +
                                                      ", lost=" + std::to_string(quality.lost_total()));
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
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTypes{{
      {"application/json", "flamegraph"},
      {"*/*", "flamegraph"},
      {"application/*", "flamegraph"},
      {"text/plain", "folded"},
      {"application/x-protobuf", "pprof"},
      {"application/vnd.google.protobuf", "pprof"},
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
