// SPDX-License-Identifier: Apache-2.0
//
// OldStackPace: how many stacks of threads that have waited for long may be read, so that they take a given share of a
// CPU. Belongs to one thread. No clock, no system calls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "daemon/waits/cpu_credit.h"

namespace flamed::daemon {

class OldStackPace {
 public:
  explicit OldStackPace(MonotonicTime now) : credit_(kCredit, now) {}

  /// So many may be read now.
  [[nodiscard]] std::uint32_t count(MonotonicTime now) {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(credit_.left_ns(now) / stack_ns_, 0, kMost));
  }
  /// So many were read, at least one.
  void spend(std::int64_t stacks, std::int64_t cpu_ns) {
    credit_.spend(cpu_ns);
    // A stack that costs more than all that can be saved up would be the last one.
    stack_ns_ = std::clamp<std::int64_t>((3 * stack_ns_ + cpu_ns / stacks) / 4, 1, kCredit.most_ns);
  }

 private:
  /// At first there is enough for a machine with some hundred threads.
  static constexpr CpuCredit::Options kCredit{
      .share = 0.0002, .most_ns = 20 * kNsPerMs, .first_ns = 20 * kNsPerMs, .most_debt_ns = 12 * kNsPerMs};
  /// A guess until some were read.
  static constexpr std::int64_t kFirstStackNs = 40'000;
  /// The slices of so many have room.
  static constexpr std::int64_t kMost = 64;

  CpuCredit credit_;
  std::int64_t stack_ns_ = kFirstStackNs;  ///< what one costs
};

}  // namespace flamed::daemon
