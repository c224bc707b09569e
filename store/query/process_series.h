// SPDX-License-Identifier: Apache-2.0
//
// ProcessSeries: the CPU time of groups of processes, step by step, where the asker says which process is in which
// group. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "store/model/answer_facts.h"
#include "store/model/process_info.h"
#include "store/model/query_budget.h"
#include "store/query/step_walk.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

struct ProcessSeries : AnswerFacts {
  /// From the start of the asked window on, as long as asked. The last one may end after the window.
  Steps steps;
  std::vector<std::vector<std::uint64_t>> ns;  ///< CPU time, by group, then by step
};

/// The group that a process is in, less than the number of groups; empty: it is left out. Called once for each process
/// with samples.
using GroupOf = std::function<std::optional<std::size_t>(const ProcessId&)>;

/// Has exactly the selection's samples in AnswerFacts::used. A minute that is kept only as counts is in the step that
/// it ends in, also if steps are shorter than a minute.
Result<ProcessSeries> process_series(const Snapshot& snapshot, const Selection& selection, std::int64_t step_ns,
                                     std::size_t groups, const GroupOf& group_of, QueryBudget& budget);

}  // namespace flamed::store
