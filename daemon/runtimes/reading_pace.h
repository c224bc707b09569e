// SPDX-License-Identifier: Apache-2.0
//
// ReadingPace: when the code heap of a JVM may be read again. Soon in a program that has just begun, since most of its
// code is new, and it may end at any moment; more and more rarely while it goes on.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace flamed::daemon {

class ReadingPace {
 public:
  /// A sample waits for rows for 2 s.
  static constexpr std::int64_t kShortestNs = 50 * kNsPerMs;
  static constexpr std::int64_t kLongestNs = 1500 * kNsPerMs;
  /// The pause is this part of the time that the program has been making code for.
  static constexpr std::int64_t kPart = 16;
  /// At least so many times as long as the last reading took, up to kLongestNs: on a crowded machine readings take as
  /// long as others' turns.
  static constexpr std::int64_t kTimes = 10;
  /// After this time without a reading the program counts as new.
  static constexpr std::int64_t kQuietNs = 10 * kNsPerSecond;

  /// A reading that took `took_ns` has ended; `failures` of them in a row, or 0.
  void read(MonotonicTime now, std::int64_t took_ns, unsigned failures) {
    if (read_at_.ns == 0 || now.ns - read_at_.ns >= kQuietNs) new_since_ = now;
    read_at_ = now;
    const std::int64_t pause_ns = std::max((now.ns - new_since_.ns) / kPart, took_ns * kTimes);
    pause_ns_ = std::clamp(pause_ns, kShortestNs, kLongestNs);
    if (failures != 0) pause_ns_ = std::max(pause_ns_, kShortestNs << failures);
  }

  [[nodiscard]] bool may_read(MonotonicTime now) const { return now.ns - read_at_.ns >= pause_ns_; }
  /// The end of the last reading; 0: there was none.
  [[nodiscard]] MonotonicTime read_at() const { return read_at_; }

 private:
  MonotonicTime read_at_{};
  MonotonicTime new_since_{};
  std::int64_t pause_ns_ = 0;
};

}  // namespace flamed::daemon
