// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/visit_pace.h"

#include <algorithm>

namespace flamed::daemon {
namespace {

/// A turn costs a wake-up, some 30 us. A shorter one would be mostly that.
constexpr std::int64_t kShortestTurnNs = 200'000;
/// What was not used is lost after so many periods.
constexpr double kKeptPeriods = 2;
/// Turns come after 0.5 to 1.5 periods.
constexpr double kLeastOfPeriod = 0.5;

}  // namespace

VisitPace::VisitPace(const Options& options, MonotonicTime now)
    : options_(options), random_(options.seed), earned_until_(now) {
  ended(now, 0);
}

void VisitPace::earn(MonotonicTime now) {
  const auto earned = static_cast<double>(now.ns - earned_until_.ns) * options_.share;
  const double most = kKeptPeriods * std::max(static_cast<double>(options_.period_ns) * options_.share,
                                              static_cast<double>(kShortestTurnNs));
  credit_ns_ = std::min(credit_ns_ + static_cast<std::int64_t>(earned), static_cast<std::int64_t>(most));
  earned_until_ = now;
}

std::int64_t VisitPace::turn_ns(MonotonicTime now) {
  earn(now);
  return std::max<std::int64_t>(credit_ns_, 0);
}

void VisitPace::ended(MonotonicTime now, std::int64_t cpu_ns) {
  earn(now);
  credit_ns_ -= cpu_ns;
  const double until_worth_ns = static_cast<double>(kShortestTurnNs - credit_ns_) / options_.share;
  const double period_ns = std::max(static_cast<double>(options_.period_ns), until_worth_ns);
  const double jitter = std::uniform_real_distribution(kLeastOfPeriod, 2 - kLeastOfPeriod)(random_);
  next_ = {now.ns + static_cast<std::int64_t>(period_ns * jitter)};
}

}  // namespace flamed::daemon
