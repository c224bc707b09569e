// SPDX-License-Identifier: Apache-2.0
//
// What the answers of answers.h have in common. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "api/answer/answers.h"
#include "api/http/problem.h"
#include "store/model/answer_facts.h"
#include "store/model/profile_options.h"
#include "store/model/query_budget.h"
#include "store/model/selection.h"
#include "store/ring/snapshot.h"

namespace flamed::api {

/// A question that can be put to the store.
struct ReadyQuestion {
  store::Snapshot snapshot;
  store::Selection selection;
};

/// The window and selection of the query, or what is wrong with them: also that a process in them was never seen.
std::variant<ReadyQuestion, Problem> prepare(const AnswerContext& context);

/// Empty when each process named is known to the snapshot, or runs. `prefix` is that of the parameters that name them,
/// "base_" for the side to compare with.
std::optional<Problem> check_processes(const store::Selection& selection, const store::Snapshot& snapshot,
                                       const Sources& sources, const std::string& prefix = "");

/// Narrows a selection to the part of each second that the query asks for, or says why it cannot: that of time of which
/// only minutes' counts are kept is not known.
std::optional<Problem> narrow_to_part(store::Selection& selection, const ReadyQuestion& question,
                                      const AnswerContext& context, const std::string& prefix = "");

/// What one question may cost: 20 s, and memory of about 128 MiB.
store::QueryBudget budget_for(const Sources& sources);

/// Sets facts.coverage: of the whole machine and of processes named by pid.
void add_coverage(store::AnswerFacts& facts, const ReadyQuestion& question, const Sources& sources);

/// Where an answer has no samples, looks whether another window would have any: sets facts.matched_ever, and warns
/// where nothing that is retained fits what is asked for. `prefix` is "base_" for the side to compare with.
void look_further(store::AnswerFacts& facts, std::uint64_t samples, const ReadyQuestion& question,
                  const AnswerContext& context, const store::ProfileOptions& options = {},
                  const std::string& prefix = "");

/// Marks an answer about time that lies far enough back for no sample to be on its way any more.
Response settle(Response response, const store::WallWindow& used, const AnswerContext& context);

/// Of formats without room for anything but data: the window, the counts, the share of samples whose frames have names,
/// whose processes are visible where that is not everybody's, and the warnings as headers.
void add_fact_headers(Response& response, const store::AnswerFacts& facts, std::uint64_t samples, double symbolised);

/// The format of a profile: what the query says, else what the header Accept prefers among those with a media type of
/// their own, else the first.
std::string_view format_of(const AnswerContext& context);

}  // namespace flamed::api
