// SPDX-License-Identifier: Apache-2.0
//
// NoticePace: from when on notices of what the kernel program missed wake the reader again. Soon where they are few;
// where programs are started all the time, so many times a second on average, so that each wake-up finds several of
// them.
//
// Belongs to the reader thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace flamed::daemon {

class NoticePace {
 public:
  /// What many processes miss at once comes in one go.
  static constexpr std::int64_t kShortestNs = 10 * kNsPerMs;
  /// Between wake-ups on average, once kBurst of them have come faster; times as much where sampling was stretched.
  static constexpr std::int64_t kPeriodNs = 50 * kNsPerMs;
  static constexpr std::int64_t kBurst = 8;

  /// Where the budget makes samples rarer (Sampler::stretch_period()), wake-ups become so, too: beside a build they
  /// cost more than samples.
  void stretch(unsigned times) {
    if (period_ns_ == kPeriodNs * times) return;
    period_ns_ = kPeriodNs * times;
    spent_until_ns_ = 0;
  }

  /// A notice has woken the reader.
  void woken(MonotonicTime now) {
    spent_until_ns_ = std::max(spent_until_ns_, now.ns) + period_ns_;
    listens_from_.ns = std::max(now.ns + kShortestNs, spent_until_ns_ - kBurst * period_ns_);
  }
  /// Notices that come before have to wait until then.
  [[nodiscard]] MonotonicTime listens_from() const { return listens_from_; }

 private:
  std::int64_t period_ns_ = kPeriodNs;
  std::int64_t spent_until_ns_ = 0;  ///< when all that came faster than on average will be made up for
  MonotonicTime listens_from_{};
};

}  // namespace flamed::daemon
