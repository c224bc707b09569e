// SPDX-License-Identifier: Apache-2.0
//
// NoticePace: from when on notices of missing table entries wake the reader again. Soon if they are few; if programs
// are started all the time, at a limited rate, so that each wake-up handles several of them.
//
// Belongs to the reader thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace flamed::daemon {

class NoticePace {
 public:
  /// Collects the notices of many processes at once.
  static constexpr std::int64_t kShortestNs = 10 * kNsPerMs;
  /// Between wake-ups on average, once kBurst of them have come faster; multiplied by the stretch of sampling.
  static constexpr std::int64_t kPeriodNs = 100 * kNsPerMs;
  static constexpr std::int64_t kBurst = 8;

  /// When the budget stretches the sampling period (Sampler::stretch_period()), wake-ups become rarer, too: during a
  /// build they cost more than samples.
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
  /// Earlier notices wait until then.
  [[nodiscard]] MonotonicTime listens_from() const { return listens_from_; }

 private:
  std::int64_t period_ns_ = kPeriodNs;
  std::int64_t spent_until_ns_ = 0;  ///< when the wake-ups that came early are paid back
  MonotonicTime listens_from_{};
};

}  // namespace flamed::daemon
