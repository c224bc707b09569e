// SPDX-License-Identifier: Apache-2.0
//
// Common parts of the answers in answers.h. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "api/answer/answers.h"
#include "api/http/problem.h"
#include "api/render/render_summary.h"
#include "store/model/answer_facts.h"
#include "store/model/profile.h"
#include "store/model/profile_options.h"
#include "store/model/query_budget.h"
#include "store/model/selection.h"
#include "store/ring/snapshot.h"

namespace flamed::api {

/// A query for the store.
struct ReadyQuestion {
  store::Snapshot snapshot;
  store::Selection selection;
  store::FrameNamer* namer = nullptr;  ///< of the snapshot's frames; null: the sources'
};
store::FrameNamer& namer_of(const AnswerContext& context, const ReadyQuestion& question);

/// The query's window, and a snapshot with what memory and disk have of it.
struct WindowView {
  store::Snapshot snapshot;
  store::WallWindow window;
};
std::variant<WindowView, Problem> view_window(const AnswerContext& context, const store::Detail& detail = {});

/// Of an answer about stacks: single threads and samples if the query tells them apart.
store::Detail by_stack(const AnswerContext& context);
/// Of an answer about processes, in steps of that length. As by_stack() if the query tells more apart.
store::Detail by_process(const AnswerContext& context, std::int64_t step_ns);
/// Of an answer that has threads or single samples.
inline constexpr store::Detail kOnlyMinutes{.only_minutes = true};

/// The window and selection of the query, or the problem with them, such as a process that was never seen.
std::variant<ReadyQuestion, Problem> prepare(const AnswerContext& context, const store::Detail& detail);

/// Empty if each selected process is in the snapshot, or runs. `prefix` is the prefix of the parameters, "base_" for
/// the side to compare with.
std::optional<Problem> check_processes(const store::Selection& selection, const store::Snapshot& snapshot,
                                       const Sources& sources, const std::string& prefix = "");

/// Narrows a selection to the queried part of each second. Fails for time of which only minutes' counts are kept.
std::optional<Problem> narrow_to_part(store::Selection& selection, const ReadyQuestion& question,
                                      const AnswerContext& context, const std::string& prefix = "");

/// Empty if the query's measure has that format.
std::optional<Problem> check_format(const AnswerContext& context, std::string_view format);

/// The limits of one query: 20 s, and memory of about 128 MiB.
store::QueryBudget budget_for(const Sources& sources);

/// Sets facts.coverage, for the whole machine and for processes by pid; of waiting time for the whole machine.
void add_coverage(store::AnswerFacts& facts, const ReadyQuestion& question, const Sources& sources);

/// If an answer has no samples, checks whether another window would have any: sets facts.matched_ever, and warns if no
/// retained sample matches the query. `prefix` is "base_" for the side to compare with.
void look_further(store::AnswerFacts& facts, std::uint64_t samples, const ReadyQuestion& question,
                  const AnswerContext& context, const store::ProfileOptions& options = {},
                  const std::string& prefix = "");

/// Marks the answer as settled if its window is so old that no more samples of it can arrive.
Response settle(Response response, const store::WallWindow& used, const AnswerContext& context);

SummaryFacts summary_facts_of(const ReadyQuestion& question, const store::ProfileOptions& options,
                              const Sources& sources);

/// For formats of other tools. The headers have the window, the counts, the share of named functions, the visible user
/// if there is one, and the warnings.
void add_fact_headers(Response& response, const store::AnswerFacts& facts, std::uint64_t samples, double symbolised);

/// The format of a profile: the query's, else the one that the header Accept prefers among those with a media type of
/// their own, else the first.
std::string_view format_of(const AnswerContext& context);

}  // namespace flamed::api
