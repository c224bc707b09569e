// SPDX-License-Identifier: Apache-2.0
//
// FloodFilter: passes a few messages of each shape in a period, and counts the suppressed ones, so that a problem that
// repeats a thousand times a second does not fill the journal. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"

namespace flamed::daemon {

class FloodFilter {
 public:
  /// Ten messages of a kind show the problem; more do not help.
  static constexpr std::uint32_t kBurst = 10;
  static constexpr std::int64_t kPeriodNs = 10 * kNsPerSecond;
  /// Number of distinct shapes; further ones share one.
  static constexpr std::size_t kMostShapes = 256;

  struct Decision {
    bool write = true;
    std::uint64_t left_out = 0;  ///< messages of this shape that were suppressed before this one
  };
  Decision admit(std::string_view message, MonotonicTime now);

  /// The message without numbers, quoted text, and paths after the first slash.
  static std::string shape_of(std::string_view message);

 private:
  struct Shape {
    MonotonicTime since;
    std::uint32_t written = 0;
    std::uint64_t left_out = 0;
  };
  std::unordered_map<std::string, Shape> shapes_;
};

}  // namespace flamed::daemon
