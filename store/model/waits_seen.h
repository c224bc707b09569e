// SPDX-License-Identifier: Apache-2.0
//
// WaitsSeen: until when threads are known to have stayed in the waits that visits found them in.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace flamed::store {

/// Owners whose threads are visited less often than all others, and since when all of these were.
using LateOwners = std::vector<std::pair<std::uint32_t, MonotonicTime>>;

struct WaitsSeen {
  MonotonicTime all{
      std::numeric_limits<std::int64_t>::min()};  ///< but those of late owners; the least: nothing is known
  LateOwners late{};

  [[nodiscard]] MonotonicTime of(std::uint32_t owner) const {
    for (const auto& [user, time] : late) {
      if (user == owner) return time;
    }
    return all;
  }
};

}  // namespace flamed::store
