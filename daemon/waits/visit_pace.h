// SPDX-License-Identifier: Apache-2.0
//
// VisitPace: when threads are visited next, and for how long, so that it costs a given share of a CPU. A round over all
// threads of a small machine takes one visit to it a second; with 20,000 threads a round is spread over many. No clock,
// no system calls. Belongs to one thread.
#pragma once

#include <cstdint>
#include <random>

#include "base/clock.h"
#include "daemon/waits/cpu_credit.h"

namespace flamed::daemon {

class VisitPace {
 public:
  struct Options {
    /// CPU time per time.
    double share = 0.0005;
    /// Mean time between two turns, if the share allows it.
    std::int64_t period_ns = kNsPerSecond;
    std::uint32_t seed = 1;
  };
  /// From `now` on.
  VisitPace(const Options& options, MonotonicTime now);

  [[nodiscard]] double share() const { return options_.share; }
  /// When the next turn begins. The times are jittered, so that no program runs in step with them.
  [[nodiscard]] MonotonicTime next() const { return next_; }
  /// The longest time that a turn which begins now may take. Never so short that it is used up by its beginning.
  [[nodiscard]] std::int64_t turn_ns(MonotonicTime now);
  /// The turn has ended. `cpu_ns`: all that it cost, with what comes before and after it.
  void ended(MonotonicTime now, std::int64_t cpu_ns);

 private:
  const Options options_;
  std::minstd_rand random_;
  CpuCredit credit_;
  MonotonicTime next_;
};

}  // namespace flamed::daemon
