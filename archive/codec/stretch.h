// SPDX-License-Identifier: Apache-2.0
//
// Stretches: ten minutes of the wall clock, from a multiple of them on. Sums and coarse periods have the minutes of
// one together. Pure; any thread.
#pragma once

#include <cstdint>

#include "archive/codec/minute.h"
#include "base/clock.h"

namespace flamed::archive {

inline constexpr std::int64_t kStretchNs = 10 * kNsPerMinute;

/// Whether `next` belongs to the same stretch as `stretch`, which has all before it: it follows without a gap, and has
/// the same period. Both are of one session.
[[nodiscard]] bool goes_on(const Minute& stretch, const Minute& next);

/// Adds all of a minute that goes on with it, but its pairs.
void extend(Minute& stretch, const Minute& next);

}  // namespace flamed::archive
