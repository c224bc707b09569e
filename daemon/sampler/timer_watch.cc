// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/timer_watch.h"

#include <algorithm>
#include <utility>

namespace flamed::daemon {
namespace {

/// A busy CPU's newest sample is younger than this.
constexpr std::int64_t kQuietNs = 200 * kNsPerMs;
constexpr std::int64_t kQuietPeriods = 3;

}  // namespace

TimerWatch::TimerWatch(MonotonicTime now, std::int64_t period_ns, std::uint64_t taken)
    : period_ns_(period_ns), taken_(taken), alive_until_(now) {}

bool TimerWatch::is_quiet(const Signs& signs) const {
  const std::int64_t since_ns = signs.now.ns - signs.newest.value_or(alive_until_).ns;
  return signs.taken == taken_ || since_ns > std::max(kQuietNs, kQuietPeriods * period_ns_);
}

TimerWatch::Verdict TimerWatch::look(const Signs& signs) {
  const bool quiet = is_quiet(signs);
  const bool came = signs.taken != taken_;
  taken_ = signs.taken;
  if (signs.newest) alive_until_ = std::max(alive_until_, *signs.newest);
  if (came) {
    // CPU time since the newest sample is at most the CPU time since the last check.
    const std::optional<std::int64_t> before = std::exchange(busy_ns_, signs.busy_ns);
    unasked_ns_ = before && signs.busy_ns ? std::max<std::int64_t>(*signs.busy_ns - *before, 0) : kWorthAskingNs;
    silent_ns_ = 0;
    if (quiet && unasked_ns_ >= kWorthAskingNs) return Verdict::kAsk;
    unasked_ns_ = 0;
    alive_until_ = signs.now;
    return Verdict::kWell;
  }
  std::int64_t used_ns = 0;
  if (busy_ns_ && signs.busy_ns) used_ns = std::max<std::int64_t>(*signs.busy_ns - *busy_ns_, 0);
  busy_ns_ = signs.busy_ns;
  unasked_ns_ += used_ns;
  silent_ns_ += used_ns;
  if (unasked_ns_ == 0) alive_until_ = signs.now;  // the CPU was idle, so no samples are missing
  if (silent_ns_ >= kSurePeriods * period_ns_) return Verdict::kDead;
  return unasked_ns_ >= kWorthAskingNs ? Verdict::kAsk : Verdict::kWell;
}

void TimerWatch::alive(MonotonicTime now) {
  alive_until_ = now;
  unasked_ns_ = 0;
}

}  // namespace flamed::daemon
