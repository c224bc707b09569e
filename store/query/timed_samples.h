// SPDX-License-Identifier: Apache-2.0
//
// TimedSamples: the selected single samples, in the order of time. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "store/query/stack_profile.h"

namespace flamed::store {

struct TimedSample {
  WallTime time;
  std::uint32_t thread = 0;  ///< index into StackProfile::threads
  std::uint32_t stack = 0;   ///< index into StackProfile::nodes
  std::int64_t period_ns = 0;
  std::uint16_t cpu = 0;
  std::optional<Truncation> truncation{};
};

struct TimedSamples {
  StackProfile stacks;               ///< of the same samples
  std::vector<TimedSample> samples;  ///< by time
};

/// As build_stacks(). Only time with single samples is used: if the window begins earlier, stacks.used begins later
/// than asked and a warning says so; if there is no such time, the error has the code ENODATA.
Result<TimedSamples> timed_samples(const Snapshot& snapshot, const Selection& selection, const ProfileOptions& options,
                                   FrameNamer& namer, QueryBudget& budget);

}  // namespace flamed::store
