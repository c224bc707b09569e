// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/thread_census.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace flamed::daemon {
namespace {

/// A window may be known but for this: visits begin some seconds after flamed, and notices come with the next drain.
constexpr std::int64_t kSlackNs = 10 * kNsPerSecond;

/// A thread that loses its CPU between the two clocks finds too small a difference.
std::int64_t wall_offset_ns(const Clock& clock) { return std::max(clock.wall_offset_ns(), clock.wall_offset_ns()); }

}  // namespace

void ThreadCensus::advance(MonotonicTime time) {
  offset_ns_ = wall_offset_ns(clock_);
  settle_count(time);
  pass(time);
}

void ThreadCensus::change(MonotonicTime time, std::int64_t by) {
  settle_count(time);
  pass(time);
  // A thread of which only the end is known is one of the kernel's, or its start was lost.
  if (threads_) threads_ = std::max<std::int64_t>(*threads_ + by, 0);
}

void ThreadCensus::settle_count(MonotonicTime until) {
  if (!pending_ || pending_->time > until) return;
  const ThreadCount count = *std::exchange(pending_, std::nullopt);
  const auto threads = static_cast<std::int64_t>(count.threads);
  if (!threads_) {
    until_ = count.time;
  } else {
    pass(count.time);
    const auto wrong = static_cast<double>(std::abs(*threads_ - threads));
    const std::lock_guard lock(mutex_);
    minute_of({count.time.ns + offset_ns_}).error_ns += wrong * static_cast<double>(count.time.ns - counted_.ns);
  }
  threads_ = threads;
  counted_ = count.time;
}

void ThreadCensus::pass(MonotonicTime until) {
  if (!threads_ || until <= until_) return;
  const std::lock_guard lock(mutex_);
  for (std::int64_t at = until_.ns + offset_ns_; at < until.ns + offset_ns_;) {
    Minute& minute = minute_of({at});
    const std::int64_t end = std::min(until.ns + offset_ns_, at - at % kNsPerMinute + kNsPerMinute);
    minute.existed_ns += static_cast<double>(*threads_) * static_cast<double>(end - at);
    minute.known.to = {std::max(minute.known.to.ns, end)};
    at = end;
  }
  until_ = until;
}

/// The newest one, also if the wall clock was slewed back a little.
ThreadCensus::Minute& ThreadCensus::minute_of(WallTime time) {
  const auto number = [](WallTime of) { return of.ns / kNsPerMinute; };
  // Set back: two stretches of time have the same name.
  if (!minutes_.empty() && time.ns < minutes_.back().known.from.ns - kNsPerSecond) minutes_.clear();
  if (minutes_.empty() || number(minutes_.back().known.from) < number(time)) {
    while (!minutes_.empty() && minutes_.front().known.to.ns < time.ns - retention_ns_) minutes_.pop_front();
    minutes_.push_back({{time, time}});
  }
  return minutes_.back();
}

api::ThreadTime ThreadCensus::in(const store::WallWindow& window) const {
  const std::lock_guard lock(mutex_);
  double existed_ns = 0;
  double error_ns = 0;
  std::int64_t known_ns = 0;
  for (const Minute& minute : minutes_) {
    const std::int64_t overlap_ns =
        std::min(window.to, minute.known.to).ns - std::max(window.from, minute.known.from).ns;
    if (overlap_ns <= 0) continue;
    const double part =
        static_cast<double>(overlap_ns) / static_cast<double>(minute.known.to.ns - minute.known.from.ns);
    existed_ns += part * minute.existed_ns;
    error_ns += part * minute.error_ns;
    known_ns += overlap_ns;
  }
  if (known_ns == 0 || known_ns + kSlackNs < window.to.ns - window.from.ns)
    return {.reason = "threads were not counted in all of it"};
  return {static_cast<std::uint64_t>(existed_ns), static_cast<std::uint64_t>(error_ns)};
}

}  // namespace flamed::daemon
