// SPDX-License-Identifier: Apache-2.0
#include "daemon/budget/cpu_governor.h"

#include <algorithm>
#include <utility>

namespace flamed::daemon {
namespace {

/// The next frequency is chosen by the cost in this time, so that a load that has just begun counts fully.
constexpr std::int64_t kLatestNs = 2 * kNsPerSecond;

unsigned steps_from(double hz) {
  unsigned steps = 0;
  while (hz / 2 >= CpuGovernor::kLowestHz) {
    hz /= 2;
    ++steps;
  }
  return steps;
}

CostShares shares_between(const CostReading& before, const CostReading& now) {
  const double all_ns =
      static_cast<double>(now.now.ns - before.now.ns) * static_cast<double>(std::max<std::size_t>(now.cpus, 1));
  // The clock of an ended thread may be missing from a sum.
  const auto share = [&](std::int64_t from, std::int64_t to) {
    return static_cast<double>(std::max<std::int64_t>(to - from, 0)) / all_ns;
  };
  return {share(before.program_ns, now.program_ns),   share(before.daemon_ns, now.daemon_ns),
          share(before.names_ns, now.names_ns),       0,
          share(before.skipping_ns, now.skipping_ns), share(before.background_ns, now.background_ns),
          share(before.answers_ns, now.answers_ns)};
}

}  // namespace

CpuGovernor::CpuGovernor(unsigned frequency_hz, std::optional<double> budget)
    : full_frequency_hz_(frequency_hz), steps_(steps_from(frequency_hz)), budget_(budget) {}

void CpuGovernor::set_budget(std::optional<double> budget) {
  if (budget == budget_) return;
  budget_ = budget;
  is_beginning_ = false;
  since_step_ = 0;
  hold_ns_ = kFirstHoldNs;
  is_background_slowed_ = false;
  if (last_ && budget_) saved_ns_ = *budget_ * static_cast<double>(kSavedNs) * static_cast<double>(last_->cpus);
  if (!budget_ && step_ != 0) {
    step_ = 0;
    ++raised_;
    held_ns_ = 0;
    was_raised_ = true;
  }
}

void CpuGovernor::look(const CostReading& reading) {
  if (!last_) {
    began_ = reading.now;
    last_ = reading;
    if (budget_) saved_ns_ = *budget_ * static_cast<double>(kSavedNs) * static_cast<double>(reading.cpus);
    return;
  }
  const CostReading before = *std::exchange(last_, reading);
  const std::int64_t passed_ns = reading.now.ns - before.now.ns;
  if (passed_ns <= 0) return;
  readings_.push_back({passed_ns, shares_between(before, reading)});
  slowed_ns_ = is_background_slowed_ ? slowed_ns_ + passed_ns : 0;
  if (are_names_judged()) readings_.back().shares.unpaid_names = readings_.back().shares.names;
  ++since_step_;
  held_ns_ += passed_ns;
  std::int64_t kept_ns = 0;
  for (const Interval& interval : readings_) kept_ns += interval.ns;
  while (kept_ns - readings_.front().ns >= kFirstHoldNs) {
    kept_ns -= readings_.front().ns;
    readings_.pop_front();
  }
  since_step_ = std::min(since_step_, readings_.size());
  if (is_beginning_) {
    since_step_ = 0;
    held_ns_ = 0;
    is_beginning_ = reading.now.ns - began_->ns < kBeginningNs;
    return;
  }
  if (!budget_) return;
  save(before, reading);
  judge();
}

void CpuGovernor::save(const CostReading& before, const CostReading& now) {
  const double left = std::max(*budget_ - shares().judged(), *budget_ * (1 - kSamplingPart));
  const double cpus_ns = static_cast<double>(now.now.ns - before.now.ns) * static_cast<double>(now.cpus);
  const double most_ns = *budget_ * static_cast<double>(kSavedNs) * static_cast<double>(now.cpus);
  std::int64_t spent_ns = now.background_ns - before.background_ns;
  if (!are_names_judged()) spent_ns += now.names_ns - before.names_ns;
  saved_ns_ += left * cpus_ns - static_cast<double>(std::max<std::int64_t>(spent_ns, 0));
  saved_ns_ =
      std::clamp(saved_ns_, -most_ns / static_cast<double>(kSavedNs) * static_cast<double>(kMostDebtNs), most_ns);
  if (saved_ns_ <= 0) is_background_slowed_ = true;
  if (saved_ns_ >= most_ns / 2) is_background_slowed_ = false;
}

void CpuGovernor::judge() {
  const double limit = *budget_ * kSamplingPart;
  if (is_too_much(limit)) {
    if (step_ < steps_) lower(limit);
    return;
  }
  if (step_ == 0 || held_ns_ < hold_ns_) return;
  if (!may_raise(limit)) return;
  --step_;
  ++raised_;
  was_raised_ = true;
  since_step_ = 0;
  held_ns_ = 0;
}

bool CpuGovernor::may_raise(double limit) const {
  const CostShares now = mean_of(kFirstHoldNs, since_step_);
  const bool was_taken_back = hold_ns_ != kFirstHoldNs;
  if (was_taken_back) return 2 * now.sampling() + kDaemonGrowth * now.names <= kRaiseAgainBelow * limit;
  return 2 * now.program + kDaemonGrowth * (now.daemon + now.names) <= kRaiseBelow * limit;
}

bool CpuGovernor::is_too_much(double limit) const {
  std::int64_t ns = 0;
  std::size_t above = 0;
  for (std::size_t i = 0; i < since_step_ && ns < kWindowNs; ++i) {
    const Interval& interval = readings_[readings_.size() - 1 - i];
    ns += interval.ns;
    if (judged(interval) > limit) ++above;
  }
  // Costs that do not shrink with the frequency show after a step: then the next step comes sooner.
  const bool was_lowered = lowered_ != 0 && !was_raised_ && held_ns_ < kWindowNs;
  return above >= (was_lowered ? kMostReadings - 1 : kMostReadings) && mean_of(kWindowNs, since_step_).judged() > limit;
}

void CpuGovernor::lower(double limit) {
  double cost = mean_of(kLatestNs, since_step_).judged();
  do {
    ++step_;
    cost /= 2;
  } while (step_ < steps_ && cost > limit);
  ++lowered_;
  // After a raise that did not fit, the next attempt waits longer each time.
  const bool taken_back = was_raised_ && held_ns_ < hold_ns_ + kNsPerMinute;
  hold_ns_ = taken_back ? std::min(2 * hold_ns_, kLongestHoldNs) : kFirstHoldNs;
  was_raised_ = false;
  since_step_ = 0;
  held_ns_ = 0;
}

CostShares CpuGovernor::mean_of(std::int64_t ns, std::size_t most_intervals) const {
  CostShares sum;
  std::int64_t sum_ns = 0;
  for (std::size_t i = 0; i < std::min(most_intervals, readings_.size()) && sum_ns < ns; ++i) {
    const Interval& interval = readings_[readings_.size() - 1 - i];
    const auto weight = static_cast<double>(interval.ns);
    sum.program += interval.shares.program * weight;
    sum.daemon += interval.shares.daemon * weight;
    sum.names += interval.shares.names * weight;
    sum.unpaid_names += interval.shares.unpaid_names * weight;
    sum.skipping += interval.shares.skipping * weight;
    sum.background += interval.shares.background * weight;
    sum.answers += interval.shares.answers * weight;
    sum_ns += interval.ns;
  }
  if (sum_ns == 0) return {};
  const auto all = static_cast<double>(sum_ns);
  return {sum.program / all,  sum.daemon / all,     sum.names / all,  sum.unpaid_names / all,
          sum.skipping / all, sum.background / all, sum.answers / all};
}

}  // namespace flamed::daemon
