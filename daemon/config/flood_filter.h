// SPDX-License-Identifier: Apache-2.0
//
// FloodFilter: lets through a few messages of each shape in a period, and says how many it has left out, so that
// trouble that repeats itself a thousand times a second does not fill the journal. One thread at a time.
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
  /// A dozen of a kind tell what is wrong; of another dozen nobody reads more.
  static constexpr std::uint32_t kBurst = 10;
  static constexpr std::int64_t kPeriodNs = 10 * kNsPerSecond;
  /// Shapes that are kept apart; what comes on top shares one.
  static constexpr std::size_t kMostShapes = 256;

  struct Decision {
    bool write = true;
    std::uint64_t left_out = 0;  ///< of this shape, before this message: to be told with it
  };
  Decision admit(std::string_view message, MonotonicTime now);

  /// What messages have in common that differ in numbers and in what stands in quotes or behind a path's first slash.
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
