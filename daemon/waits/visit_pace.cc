// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/visit_pace.h"

#include <algorithm>

namespace flamed::daemon {
namespace {

/// A turn costs a wake-up, 30 us, or several hundred on a virtual machine that was idle. A shorter one would be mostly
/// that.
constexpr std::int64_t kShortestTurnNs = 200'000;
/// What was not used is lost after so many periods.
constexpr double kKeptPeriods = 2;
/// A turn that took more than what is due in so long is not made up for in full. Otherwise a user whose stacks take
/// long to read could have all others' visits stop.
constexpr std::int64_t kLongestDebtNs = kNsPerMinute;
/// Turns come after 0.5 to 1.5 periods.
constexpr double kLeastOfPeriod = 0.5;

CpuCredit::Options credit_of(const VisitPace::Options& options) {
  const double most = kKeptPeriods * std::max(static_cast<double>(options.period_ns) * options.share,
                                              static_cast<double>(kShortestTurnNs));
  return {.share = options.share,
          .most_ns = static_cast<std::int64_t>(most),
          .most_debt_ns = static_cast<std::int64_t>(static_cast<double>(kLongestDebtNs) * options.share)};
}

}  // namespace

VisitPace::VisitPace(const Options& options, MonotonicTime now)
    : options_(options), random_(options.seed), credit_(credit_of(options), now) {
  ended(now, 0);
}

std::int64_t VisitPace::turn_ns(MonotonicTime now) { return std::max(credit_.left_ns(now), kShortestTurnNs); }

void VisitPace::ended(MonotonicTime now, std::int64_t cpu_ns) {
  credit_.spend(cpu_ns);
  const double until_worth_ns = static_cast<double>(kShortestTurnNs - credit_.left_ns(now)) / options_.share;
  const double period_ns = std::max(static_cast<double>(options_.period_ns), until_worth_ns);
  const double jitter = std::uniform_real_distribution(kLeastOfPeriod, 2 - kLeastOfPeriod)(random_);
  next_ = {now.ns + static_cast<std::int64_t>(period_ns * jitter)};
}

}  // namespace flamed::daemon
