// SPDX-License-Identifier: Apache-2.0
//
// BudgetKeeper: reads what flamed costs, asks the governor, and has done what it says: the reader sets the sampler's
// frequency, and the `modules` thread asks before each piece of work in the background.
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
  std::string set_by = "default";  ///< or a flag, or a file's name: for people
};

class BudgetKeeper {
 public:
  /// `read_cost` is called on the reader thread, every few seconds.
  BudgetKeeper(unsigned frequency_hz, CpuBudget budget, std::function<CostReading()> read_cost);

  // -- The reader ----------------------------------------------------------------------------------------------------

  /// By what periods are to be stretched now. Looks at the costs when a second has passed since it last did.
  /// Where the machine is idle it is measured less often.
  [[nodiscard]] unsigned look(MonotonicTime now, bool is_idle);

  /// Does sampling take too much just now? Then the next look is to come soon.
  [[nodiscard]] bool is_exceeded() const;

  // -- The `modules` thread ------------------------------------------------------------------------------------------

  /// False: not now. Whatever is put off has to be asked for again.
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
    std::uint64_t put_off = 0;  ///< pieces of work in the background
  };
  [[nodiscard]] State state() const;

 private:
  void tell(double before_hz, bool was_slowed) const;

  const std::function<CostReading()> read_cost_;
  mutable std::mutex mutex_;  ///< for what follows
  CpuGovernor governor_;
  std::string budget_set_by_;
  CostReading last_;
  bool has_read_ = false;
  std::uint64_t put_off_ = 0;
};

/// "0.3 %", "0.05 %": a part of the whole as people read it.
std::string format_percent(double part);

/// "49.5 Hz", "99 Hz".
std::string format_frequency(double hz);

/// What is in force and why, a sentence.
std::string describe(const BudgetKeeper::State& state);

}  // namespace flamed::daemon
