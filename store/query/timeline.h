// SPDX-License-Identifier: Apache-2.0
//
// Timeline: the CPU use of a selection, step by step. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "store/model/answer_facts.h"
#include "store/model/process_info.h"
#include "store/model/query_budget.h"
#include "store/model/wait_reason.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

/// A sample is a kernel sample if it has a kernel frame.
struct TimelineStep {
  std::uint64_t user_samples = 0;
  std::uint64_t kernel_samples = 0;
  std::uint64_t user_ns = 0;  ///< CPU time: samples × period
  std::uint64_t kernel_ns = 0;
};

struct ProcessTimeline {
  ProcessInfo info;
  std::vector<TimelineStep> steps;  ///< as many as Timeline::steps
};

struct LostSamples {
  WallWindow window;  ///< a slot's
  std::uint64_t samples = 0;
};

struct Timeline : AnswerFacts {
  /// As asked; if samples are no longer kept one by one, rounded up to whole minutes, and a warning says so.
  std::int64_t step_ns = 0;
  WallTime start;                          ///< of the first step: a multiple of `step_ns`, not after used.from
  std::vector<TimelineStep> steps;         ///< up to used.to; the window may cover the first and the last only in part
  std::vector<WaitSums> waits;             ///< as many as `steps`, in nanoseconds; of CPU time none
  std::vector<ProcessTimeline> processes;  ///< those that used most, most first
  std::vector<LostSamples> lost;           ///< of the whole machine, since a lost sample has no process; oldest first
  std::vector<WallWindow> gaps;            ///< parts of `used` of at least a second without any samples, oldest first
};

/// `step_ns` is at least one second. `most_processes`: the size of Timeline::processes.
Result<Timeline> timeline(const Snapshot& snapshot, const Selection& selection, std::int64_t step_ns,
                          std::size_t most_processes, QueryBudget& budget);

}  // namespace flamed::store
