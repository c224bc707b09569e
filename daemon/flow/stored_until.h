// SPDX-License-Identifier: Apache-2.0
//
// StoredUntil: the time up to which samples are stored. A request for later ones makes the reader drain now: so samples
// may stay in the kernel's buffers for seconds while there are no requests.
//
// Ingest advances it, any thread waits. The reader that `drain_soon` wakes must outlive it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

#include "base/clock.h"

namespace flamed::daemon {

class StoredUntil {
 public:
  /// `drain_soon` wakes the reader; any thread calls it.
  explicit StoredUntil(std::function<void()> drain_soon) : drain_soon_(std::move(drain_soon)) {}

  /// Ingest: all samples before `time` are stored.
  void advance(MonotonicTime time) {
    {
      const std::lock_guard lock(mutex_);
      until_ = time;
    }
    if (is_awaited()) advanced_.notify_all();
  }

  /// Any thread: returns when all samples before `time` are stored, or after `longest`: if ingest is behind, answers
  /// must not wait for it.
  void await(MonotonicTime time, std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    if (until_ >= time) return;
    ++awaited_;
    lock.unlock();
    drain_soon_();
    lock.lock();
    advanced_.wait_for(lock, longest, [&] { return until_ >= time; });
    --awaited_;
  }

  /// Does a thread wait? Then ingest must be woken even if nothing happened.
  [[nodiscard]] bool is_awaited() const { return awaited_.load() != 0; }

 private:
  const std::function<void()> drain_soon_;
  std::atomic<int> awaited_ = 0;
  std::mutex mutex_;
  std::condition_variable advanced_;
  MonotonicTime until_;
};

}  // namespace flamed::daemon
