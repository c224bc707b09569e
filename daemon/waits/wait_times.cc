// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/wait_times.h"

#include <algorithm>
#include <utility>

namespace flamed::daemon {
namespace {

/// Takes out what can be told. A debt stays: the kernel counts the time of a wait or a run only when it is over.
std::int64_t take(std::int64_t& left_ns) { return left_ns > 0 ? std::exchange(left_ns, 0) : 0; }

}  // namespace

std::optional<WaitTimes::Times> WaitTimes::visited(std::uint32_t tid, MonotonicTime time, const flamed_wait& wait,
                                                   std::uint32_t owner) {
  const auto found = threads_.find(tid);
  const bool is_queued = wait.state == FLAMED_WAITS_FOR_CPU;
  const bool is_disk = !is_queued && (wait.known & FLAMED_IS_COUNTED_AS_DISK) != 0;
  if (found == threads_.end() || found->second.start_ns != wait.thread_start_ns) {
    ended(tid);
    if (threads_.size() >= kMostThreads) return std::nullopt;
    std::size_t& of_owner = owners_[owner];
    if (of_owner >= kMostOfOneOwner) return std::nullopt;
    ++of_owner;
    const bool knows_disk = (wait.known & FLAMED_KNOWS_DISK) != 0;
    threads_.emplace(tid, Thread{owner, wait.thread_start_ns, time, time, wait.switches, wait.run_ns, wait.queued_ns,
                                 wait.disk_ns, is_queued, is_disk, knows_disk});
    if (knows_disk) ++threads_with_disk_;
    return std::nullopt;
  }
  Thread& thread = found->second;
  thread.heard = time;
  Times times;
  if (thread.switches == wait.switches && thread.is_queued == is_queued) {
    times.is_known = true;
    return times;
  }
  const std::int64_t seen_ns = std::clamp(static_cast<std::int64_t>(wait.last_seen_ns), thread.recorded.ns,
                                          std::max(thread.recorded.ns, time.ns));
  times.seen = {seen_ns};
  times.before_ns = seen_ns - thread.recorded.ns;
  const auto ran_ns = static_cast<std::int64_t>(wait.run_ns - thread.run_ns);
  const auto queued_ns = static_cast<std::int64_t>(wait.queued_ns - thread.queued_ns);
  // All of the time in run queues, with that of the previous record if it stood in one.
  const std::int64_t told_ns = thread.is_queued ? times.before_ns : 0;
  thread.queued_left_ns += queued_ns - told_ns;
  // Likewise for block devices.
  const std::int64_t disk_ns =
      static_cast<std::int64_t>(wait.disk_ns - thread.disk_ns) - (thread.is_disk ? times.before_ns : 0);
  thread.waited_left_ns += time.ns - seen_ns - ran_ns - (queued_ns - told_ns) - disk_ns;
  if (thread.disk_left_ns <= 0) thread.disk_left_since = time;
  thread.disk_left_ns += disk_ns;
  if (is_queued) {
    times.now_ns = take(thread.queued_left_ns);
  } else {
    if (!is_disk) limit_disk(thread);
    times.now_ns = take(is_disk ? thread.disk_left_ns : thread.waited_left_ns);
    times.queued_ns = take(thread.queued_left_ns);
  }
  tell_disk(thread, time, times);
  thread.recorded = time;
  thread.switches = wait.switches;
  thread.run_ns = wait.run_ns;
  thread.queued_ns = wait.queued_ns;
  thread.disk_ns = wait.disk_ns;
  thread.is_queued = is_queued;
  thread.is_disk = is_disk;
  return times;
}

void WaitTimes::limit_disk(Thread& thread) {
  if (thread.waited_left_ns >= 0) return;
  thread.disk_left_ns += std::exchange(thread.waited_left_ns, 0);
}

void WaitTimes::tell_disk(Thread& thread, MonotonicTime time, Times& times) {
  if (thread.disk_left_ns <= 0) return;
  if (thread.is_disk) {
    // The wait of the previous record was not over when it was last seen.
    const std::int64_t more_ns = std::min(thread.disk_left_ns, time.ns - times.seen.ns);
    thread.disk_left_ns -= more_ns;
    times.seen.ns += more_ns;
    times.before_ns += more_ns;
  }
  if (time.ns - thread.disk_left_since.ns >= kDiskPatienceNs) times.disk_ns = take(thread.disk_left_ns);
}

void WaitTimes::ended(std::uint32_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  forget(found->second);
  threads_.erase(found);
}

void WaitTimes::forget(const Thread& thread) {
  if (thread.knows_disk) --threads_with_disk_;
  const auto owner = owners_.find(thread.owner);
  if (--owner->second == 0) owners_.erase(owner);
}

std::vector<std::uint32_t> WaitTimes::forget_before(const std::function<MonotonicTime(std::uint32_t owner)>& time) {
  std::vector<std::uint32_t> forgotten;
  std::erase_if(threads_, [&](const auto& thread) {
    const bool is_gone = thread.second.heard < time(thread.second.owner);
    if (!is_gone) return false;
    forgotten.push_back(thread.first);
    forget(thread.second);
    return true;
  });
  return forgotten;
}

}  // namespace flamed::daemon
