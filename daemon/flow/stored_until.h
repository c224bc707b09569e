// SPDX-License-Identifier: Apache-2.0
//
// StoredUntil: up to which moment samples are stored. Who asks for later ones has the reader drain now: so samples may
// lie in the kernel's buffers for seconds while nobody asks.
//
// Ingest tells, any thread asks. What `drain_soon` wakes must outlive it.
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

  /// Ingest: whatever was sampled before `time` is stored.
  void advance(MonotonicTime time) {
    {
      const std::lock_guard lock(mutex_);
      until_ = time;
    }
    if (is_awaited()) advanced_.notify_all();
  }

  /// Any thread: returns when all from before `time` is stored, or after `longest` all the same: ingest that is so far
  /// behind is not to hold up answers.
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

  /// Does anybody wait? Then ingest is to be woken even if nothing happened.
  [[nodiscard]] bool is_awaited() const { return awaited_.load() != 0; }

 private:
  const std::function<void()> drain_soon_;
  std::atomic<int> awaited_ = 0;
  std::mutex mutex_;
  std::condition_variable advanced_;
  MonotonicTime until_;
};

}  // namespace flamed::daemon
