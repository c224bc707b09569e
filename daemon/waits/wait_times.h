// SPDX-License-Identifier: Apache-2.0
//
// WaitTimes: from visits of threads to times. Between two visits the kernel's own counts tell exactly how long a thread
// ran, stood in run queues, and therefore waited: only where it waited is a sample. A thread that was found in the same
// wait leaves no record, but the next record says when it was last seen in it. Where the kernel counts waits for block
// devices (kernel.task_delayacct), these are told apart from the others in the same way as time in run queues.
//
// Belongs to one thread. No clock, no system calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "bpf/visits.h"

namespace flamed::daemon {

class WaitTimes {
 public:
  /// Threads that are remembered; the times of further ones are not known.
  static constexpr std::size_t kMostThreads = 131'072;
  /// Of these, of one owner: others' have room.
  static constexpr std::size_t kMostOfOneOwner = 98'304;

  /// What a visit says about the time since the one before.
  struct Times {
    /// It is in the wait of its previous record, which stands: nothing is told yet.
    bool is_known = false;
    /// So long the thread stayed in the wait of its previous record, until `seen`.
    std::int64_t before_ns = 0;
    MonotonicTime seen{};
    /// So long it waited since then, in waits of which the one found now is a sample.
    std::int64_t now_ns = 0;
    /// So long it stood in run queues, if this visit did not find it there.
    std::int64_t queued_ns = 0;
    /// So long it waited for block devices, which no visit has seen for a while.
    std::int64_t disk_ns = 0;
  };

  /// Waits for block devices are told with the stack of the next visit that finds the thread in one, if that comes
  /// within this time.
  static constexpr std::int64_t kDiskPatienceNs = 10 * kNsPerSecond;

  /// The thread has left a record. Empty at its first visit.
  std::optional<Times> visited(std::uint32_t tid, MonotonicTime time, const flamed_wait& wait, std::uint32_t owner = 0);
  void ended(std::uint32_t tid);
  /// Forgets the threads whose last record is older than a time that depends on their owner, and returns them.
  std::vector<std::uint32_t> forget_before(const std::function<MonotonicTime(std::uint32_t owner)>& time);

  [[nodiscard]] std::size_t threads() const { return threads_.size(); }
  /// Those of which the kernel counts the waits for block devices.
  [[nodiscard]] std::size_t threads_with_disk() const { return threads_with_disk_; }

 private:
  struct Thread {
    std::uint32_t owner = 0;  ///< at its first visit
    std::uint64_t start_ns = 0;
    MonotonicTime recorded;
    MonotonicTime heard;  ///< of its last record, also in the same wait
    std::uint64_t switches = 0;
    std::uint64_t run_ns = 0;
    std::uint64_t queued_ns = 0;
    std::uint64_t disk_ns = 0;
    bool is_queued = false;
    bool is_disk = false;  ///< in a wait for a block device, as the kernel counts them
    bool knows_disk = false;
    /// Not told yet; negative: told in advance. What was waited for block devices is not in the first.
    std::int64_t waited_left_ns = 0;
    std::int64_t queued_left_ns = 0;
    std::int64_t disk_left_ns = 0;
    MonotonicTime disk_left_since{};
  };

  /// All waits for block devices are over. If these were more than all waits, one had begun before the first visit, or
  /// the kernel has counted too much: note 26.
  static void limit_disk(Thread& thread);
  /// Tells of the waits for block devices that are left what need not wait for another visit.
  static void tell_disk(Thread& thread, MonotonicTime time, Times& times);

  void forget(const Thread& thread);

  std::unordered_map<std::uint32_t, Thread> threads_;
  std::unordered_map<std::uint32_t, std::size_t> owners_;  ///< how many of these each has
  std::size_t threads_with_disk_ = 0;
};

}  // namespace flamed::daemon
