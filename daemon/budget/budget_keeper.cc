// SPDX-License-Identifier: Apache-2.0
#include "daemon/budget/budget_keeper.h"

#include <spdlog/spdlog.h>

#include <array>
#include <cstdio>
#include <utility>

namespace flamed::daemon {
namespace {

/// The reader calls every two to five seconds, more often when it is woken.
constexpr std::int64_t kLookPeriodNs = 900 * kNsPerMs;
/// While the machine is nearly idle, and nothing is slowed down: reading each thread's clock is a good part of the
/// cost.
constexpr std::int64_t kIdleLookPeriodNs = 15 * kNsPerSecond;

/// "cpu_budget (0.3 % by default)"
std::string describe(double budget, const std::string& set_by) {
  return "cpu_budget (" + format_percent(budget) + " by " + set_by + ")";
}

}  // namespace

BudgetKeeper::BudgetKeeper(unsigned frequency_hz, CpuBudget budget, std::function<CostReading()> read_cost)
    : read_cost_(std::move(read_cost)),
      governor_(frequency_hz, budget.share),
      budget_set_by_(std::move(budget.set_by)) {}

unsigned BudgetKeeper::look(MonotonicTime now, bool is_idle) {
  const std::lock_guard lock(mutex_);
  const bool may_wait =
      is_idle && governor_.stretch() == 1 && !governor_.is_background_slowed() && !governor_.is_exceeded();
  if (has_read_ && now.ns - last_.now.ns < (may_wait ? kIdleLookPeriodNs : kLookPeriodNs)) return governor_.stretch();
  last_ = read_cost_();
  has_read_ = true;
  const double before_hz = governor_.frequency_hz();
  const bool was_slowed = governor_.is_background_slowed();
  governor_.look(last_);
  log_changes(before_hz, was_slowed);
  return governor_.stretch();
}

bool BudgetKeeper::is_exceeded() const {
  const std::lock_guard lock(mutex_);
  return governor_.is_exceeded();
}

void BudgetKeeper::log_changes(double before_hz, bool was_slowed) const {
  const double hz = governor_.frequency_hz();
  const std::optional<double> budget = governor_.budget();
  if (!budget) return;
  const CostShares shares = governor_.shares();
  const bool slowed = governor_.is_background_slowed();
  const std::string limit = describe(*budget, budget_set_by_);
  const std::string names = format_percent(shares.names);
  const std::string others = (shares.names > 0 ? ", names of managed runtimes " + names : std::string()) +
                             ", and sampling " + format_percent(shares.sampling());
  // Level info: normal operation, visible in /healthz and the metrics, and no reason to wake anybody.
  if (slowed && !was_slowed) {
    spdlog::info(
        "new unwind tables have to wait: the part of {} that was left for them in the last minute is used up; in the "
        "last 5 s they took {} of the machine's CPU time{}",
        limit, format_percent(shares.background), others);
  } else if (!slowed && was_slowed) {
    spdlog::info(
        "new unwind tables no longer wait: half of the part of {} that they have in a minute is available again; "
        "in the last 5 s they took {} of the machine's CPU time{}",
        limit, format_percent(shares.background), others);
  }
  if (hz != before_hz) {
    spdlog::info(
        "sampling at {}{} instead of {}: it took {} of the machine's CPU time in the last 5 s{}; "
        "its limit is {}, which is {:.0f} % of {}",
        format_frequency(hz), hz > before_hz ? " again" : "", format_frequency(before_hz),
        format_percent(shares.judged()),
        shares.unpaid_names > 0 ? ", " + format_percent(shares.unpaid_names) + " of it for names of managed runtimes"
                                : "",
        format_percent(*budget * CpuGovernor::kSamplingPart), CpuGovernor::kSamplingPart * 100, limit);
  }
}

bool BudgetKeeper::may_work_in_background() {
  const std::lock_guard lock(mutex_);
  const bool may = governor_.background_may_go_on();
  if (!may) ++put_off_;
  return may;
}

void BudgetKeeper::set_budget(CpuBudget budget) {
  const std::lock_guard lock(mutex_);
  governor_.set_budget(budget.share);
  budget_set_by_ = std::move(budget.set_by);
}

BudgetKeeper::State BudgetKeeper::state() const {
  const std::lock_guard lock(mutex_);
  State state;
  state.budget = governor_.budget();
  state.budget_set_by = budget_set_by_;
  state.frequency_hz = governor_.frequency_hz();
  state.full_frequency_hz = governor_.full_frequency_hz();
  state.is_background_slowed = governor_.is_background_slowed();
  state.shares = governor_.shares();
  state.lowered = governor_.lowered();
  state.raised = governor_.raised();
  state.put_off = put_off_;
  state.used = last_;
  return state;
}

std::string format_percent(double part) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g %%", part * 100);
  return text.data();
}

std::string format_frequency(double hz) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g Hz", hz);
  return text.data();
}

std::string describe(const BudgetKeeper::State& state) {
  const CostShares& shares = state.shares;
  std::string used = format_percent(shares.all()) + " of the machine's CPU time";
  if (shares.answers > shares.all() / 4) used += ", " + format_percent(shares.answers) + " of it for answers";
  if (shares.names > shares.all() / 4) {
    used += ", " + format_percent(shares.names) + " of it for names of managed runtimes";
  }
  if (shares.skipping > shares.all() / 4) {
    used += ", " + format_percent(shares.skipping) +
            " of it to skip the kernel's records of programs that map code or change their names all the time";
  }
  if (!state.budget) return "there is no budget; flamed uses " + used;
  used = "flamed uses " + used + "; its limit is " + describe(*state.budget, state.budget_set_by);
  std::string steps;
  if (state.frequency_hz < state.full_frequency_hz) {
    steps = "samples are taken at " + format_frequency(state.frequency_hz) + " instead of " +
            format_frequency(state.full_frequency_hz);
  }
  if (state.is_background_slowed) {
    steps += std::string(steps.empty() ? "" : " and ") + "new unwind tables have to wait";
  }
  return steps.empty() ? used : "to keep the budget " + steps + ": " + used;
}

}  // namespace flamed::daemon
