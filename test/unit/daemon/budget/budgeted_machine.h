// SPDX-License-Identifier: Apache-2.0
//
// BudgetedMachine: a BudgetKeeper on a machine with 2 CPUs whose costs a test chooses.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "daemon/budget/budget_keeper.h"

namespace flamed::daemon {

/// Sampling, background work and names of managed runtimes that use these shares of a machine with 2 CPUs. Sampling
/// took 0.4 % in the beginning, in which nothing is judged.
class BudgetedMachine {
 public:
  explicit BudgetedMachine(const CpuBudget& budget) : keeper(99, budget, [this] { return reading_; }) {
    static_cast<void>(keeper.look(reading_.now, false));
    run(CpuGovernor::kBeginningNs / kNsPerSecond, 0.004);
  }
  /// A second at a time.
  void run(std::int64_t seconds, double sampling, double background = 0, double names = 0) {
    for (int i = 0; i < seconds; ++i) {
      constexpr double kCpusNs = 2 * kNsPerSecond;
      reading_.now.ns += kNsPerSecond;
      reading_.program_ns += static_cast<std::int64_t>(sampling * kCpusNs);
      reading_.background_ns += static_cast<std::int64_t>(background * kCpusNs);
      reading_.names_ns += static_cast<std::int64_t>(names * kCpusNs);
      static_cast<void>(keeper.look(reading_.now, false));
    }
  }

  BudgetKeeper keeper;

 private:
  CostReading reading_{.now = MonotonicTime{1000 * kNsPerSecond}, .cpus = 2};
};

}  // namespace flamed::daemon
