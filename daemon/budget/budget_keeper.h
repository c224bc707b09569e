// SPDX-License-Identifier: Apache-2.0
//
// BudgetKeeper: reads flamed's cost, asks the governor, and applies its decisions: the reader sets the sampler's
// frequency, and the `modules` thread asks before each piece of background work.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/budget/cpu_governor.h"

namespace flamed::daemon {

struct CpuBudget {
  std::optional<double> share;     ///< of the CPU time of all online CPUs; empty: there is no budget
  std::string set_by = "default";  ///< or a flag, or a file's name; for people
};

class BudgetKeeper {
 public:
  /// `read_cost` is called on the reader thread, every few seconds.
  BudgetKeeper(unsigned frequency_hz, CpuBudget budget, std::function<CostReading()> read_cost);

  // -- The reader ----------------------------------------------------------------------------------------------------

  /// The factor by which the sampling period is stretched now. Reads the costs if a second has passed since the last
  /// reading, less often if the machine is idle.
  [[nodiscard]] unsigned look(MonotonicTime now, bool is_idle);

  /// Does sampling take too much now? Then look() should be called again soon.
  [[nodiscard]] bool is_exceeded() const;

  // -- The `modules` thread ------------------------------------------------------------------------------------------

  /// False: not now; ask again later.
  [[nodiscard]] bool may_work_in_background();

  // -- Any thread ----------------------------------------------------------------------------------------------------

  void set_budget(CpuBudget budget);

  struct State {
    std::optional<double> budget;
    std::string budget_set_by;
    double frequency_hz = 0;
    double full_frequency_hz = 0;
    bool is_background_slowed = false;
    CostReading used;   ///< as read last
    CostShares shares;  ///< over the last seconds
    std::uint64_t lowered = 0, raised = 0;
    std::uint64_t put_off = 0;  ///< pieces of background work
  };
  [[nodiscard]] State state() const;

 private:
  void log_changes(double before_hz, bool was_slowed) const;

  const std::function<CostReading()> read_cost_;
  mutable std::mutex mutex_;  ///< guards the members below
  CpuGovernor governor_;
  std::string budget_set_by_;
  CostReading last_;
  bool has_read_ = false;
  std::uint64_t put_off_ = 0;
};

/// "0.3 %", "0.05 %": for people.
std::string format_percent(double part);

/// "49.5 Hz", "99 Hz".
std::string format_frequency(double hz);

/// The state and its reason, a sentence.
std::string describe(const BudgetKeeper::State& state);

}  // namespace flamed::daemon
