// SPDX-License-Identifier: Apache-2.0
//
// Timeline: how much CPU a selection used, step by step. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "store/model/answer_facts.h"
#include "store/model/process_info.h"
#include "store/model/query_budget.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

/// A sample is the kernel's when it has a kernel frame.
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
  /// As asked; where samples are no longer kept one by one, rounded up to whole minutes, and a warning says so.
  std::int64_t step_ns = 0;
  WallTime start;                          ///< of the first step: a multiple of `step_ns`, not after used.from
  std::vector<TimelineStep> steps;         ///< up to used.to; the first and the last may be covered in part only
  std::vector<ProcessTimeline> processes;  ///< those that used most, most first
  std::vector<LostSamples> lost;           ///< the whole machine's, since a lost sample has no process; oldest first
  std::vector<WallWindow> gaps;            ///< parts of `used` from a second on of which nothing is known, oldest first
};

/// `step_ns` from one second on: less is taken for one second. `most_processes`: how many of Timeline::processes.
Result<Timeline> timeline(const Snapshot& snapshot, const Selection& selection, std::int64_t step_ns,
                          std::size_t most_processes, QueryBudget& budget);

}  // namespace flamed::store
