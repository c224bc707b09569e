// SPDX-License-Identifier: Apache-2.0
//
// ManualClock: a clock that changes only when it is set. Tests use it instead of sleeping. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace flamed {

class ManualClock final : public Clock {
 public:
  ManualClock(MonotonicTime monotonic, WallTime wall) : monotonic_ns_(monotonic.ns), wall_ns_(wall.ns) {}

  [[nodiscard]] MonotonicTime monotonic() const override { return {monotonic_ns_.load()}; }
  [[nodiscard]] WallTime wall() const override { return {wall_ns_.load()}; }
  [[nodiscard]] std::int64_t boottime_ns() const override { return monotonic_ns_.load(); }

  void advance_ns(std::int64_t ns) {
    monotonic_ns_ += ns;
    wall_ns_ += ns;
  }
  /// Steps the wall clock alone, as an administrator or NTP would.
  void step_wall_ns(std::int64_t ns) { wall_ns_ += ns; }

 private:
  std::atomic<std::int64_t> monotonic_ns_;
  std::atomic<std::int64_t> wall_ns_;
};

}  // namespace flamed
