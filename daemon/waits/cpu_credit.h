// SPDX-License-Identifier: Apache-2.0
//
// CpuCredit: CPU time that work may take: a share of all time, saved up to a limit, and spent in advance up to another.
// No clock, no system calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/clock.h"

namespace flamed::daemon {

class CpuCredit {
 public:
  struct Options {
    double share = 0;          ///< CPU time per time
    std::int64_t most_ns = 0;  ///< what is not used is lost beyond this
    std::int64_t first_ns = 0;
    /// What is spent beyond this is not made up for: otherwise work that once took too long would stop for as long.
    std::int64_t most_debt_ns = std::numeric_limits<std::int64_t>::max();
  };
  CpuCredit(const Options& options, MonotonicTime now)
      : share_(options.share),
        most_ns_(options.most_ns),
        most_debt_ns_(options.most_debt_ns),
        left_ns_(options.first_ns),
        earned_until_(now) {}

  /// CPU time that may be spent now; negative: it was spent in advance.
  [[nodiscard]] std::int64_t left_ns(MonotonicTime now) {
    const auto earned_ns = static_cast<double>(now.ns - earned_until_.ns) * share_;
    left_ns_ = std::min(left_ns_ + static_cast<std::int64_t>(earned_ns), most_ns_);
    earned_until_ = now;
    return left_ns_;
  }
  void spend(std::int64_t cpu_ns) { left_ns_ = std::max(left_ns_ - cpu_ns, -most_debt_ns_); }

 private:
  const double share_;
  const std::int64_t most_ns_;
  const std::int64_t most_debt_ns_;
  std::int64_t left_ns_;
  MonotonicTime earned_until_;
};

}  // namespace flamed::daemon
