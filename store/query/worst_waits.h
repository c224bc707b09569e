// SPDX-License-Identifier: Apache-2.0
//
// Worst waits: what threads waited for in minutes under pressure. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/pressure.h"
#include "base/result.h"
#include "store/model/process_info.h"
#include "store/model/query_budget.h"
#include "store/model/selection.h"
#include "store/model/wait_reason.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

/// The threads of a process, for one reason.
struct WorstWait {
  ProcessInfo process;
  WaitReason reason = WaitReason::kOther;
  std::uint64_t ns = 0;
};

/// The longest waits in each of `minutes`, at most `most`: first those for what was under pressure, then the others,
/// longest first. Never those that a program chooses, or in which it has no work (kSleep, kPoll, kCondition). Of the
/// selection without its window. `minutes` are in the order of time.
Result<std::vector<std::vector<WorstWait>>> worst_waits(const Snapshot& snapshot, Selection selection,
                                                        std::span<const PressedMinute> minutes, std::size_t most,
                                                        QueryBudget& budget);

}  // namespace flamed::store
