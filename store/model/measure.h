// SPDX-License-Identifier: Apache-2.0
//
// Measure: the time that an answer is about.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace flamed::store {

enum class Measure : std::uint8_t {
  kCpu,   ///< on a CPU
  kWait,  ///< waiting, also for a CPU
  kWall,  ///< both
};

/// "cpu", as in answers.
constexpr std::string_view name_of(Measure measure) {
  return measure == Measure::kCpu ? "cpu" : measure == Measure::kWait ? "wait" : "wall";
}

/// Waiting time is counted in units of this: a wait of a second counts as 10,000 samples with this period.
inline constexpr std::int64_t kWaitUnitNs = kNsPerMs / 10;

}  // namespace flamed::store
