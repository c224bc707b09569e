// SPDX-License-Identifier: Apache-2.0
//
// Heatmap: samples, or waiting time, by second and by the part of that second, to show patterns within a second. A
// plain value.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "store/model/answer_facts.h"
#include "store/model/query_budget.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

struct Heatmap : AnswerFacts {
  WallTime start;                     ///< of the first column: a whole second, not after used.from
  std::uint32_t columns = 0;          ///< one second each, up to used.to
  std::uint32_t rows = 0;             ///< equal parts of a second, the earliest first
  std::vector<std::uint32_t> counts;  ///< in units of period_ns; column c, row r: counts[c * rows + r]
  std::uint32_t most = 0;             ///< the largest of `counts`
  std::uint64_t total_samples = 0;
};

/// `rows` is clamped to 1 to 1000. As in timed_samples(), only time with single samples is used, and the error has the
/// code ENODATA if there is none.
Result<Heatmap> heatmap(const Snapshot& snapshot, const Selection& selection, std::uint32_t rows, QueryBudget& budget);

}  // namespace flamed::store
