// SPDX-License-Identifier: Apache-2.0
//
// BoundedQueue: hands values from one thread to another, never grows past its limit, and counts what it refused.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace flamed {

/// Any number of producers and consumers. `T` is moved in and out.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Takes `value`. If the queue is full, returns false and leaves `value` with the caller, who counts the loss.
  [[nodiscard]] bool try_push(T&& value) { return push(std::move(value), false); }
  /// The same at the front of the queue.
  [[nodiscard]] bool try_push_front(T&& value) { return push(std::move(value), true); }

  /// Waits until `until` for a value, without taking it. False: none came, and no stop was requested.
  template <typename Clock, typename Duration>
  bool await(const std::stop_token& stop, std::chrono::time_point<Clock, Duration> until) {
    const std::stop_callback wake(stop, [this] { look_again(); });
    std::unique_lock lock(mutex_);
    return ready_.wait_until(lock, until, [&] { return !items_.empty() || stop.stop_requested(); });
  }

  /// Waits for a value. Empty when `stop` is requested and nothing is left.
  std::optional<T> pop(const std::stop_token& stop) {
    // Not condition_variable_any, which knows stop tokens: it notifies while it holds a lock that the woken thread
    // needs first, and so wakes it twice. The callback goes after the lock: its end waits for a call under way.
    const std::stop_callback wake(stop, [this] { look_again(); });
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return !items_.empty() || stop.stop_requested(); });
    return take(lock);
  }

  /// Waits for a value that has a `rank`, and takes the one with the lowest rank, among equals the oldest; returns
  /// empty as soon as `stop` is requested. `rank` and `taken` are called with the queue locked. Call look_again() when
  /// ranks change without a push.
  template <typename Rank, typename Taken>
  std::optional<T> pop_lowest(const std::stop_token& stop, Rank rank, Taken taken) {
    const std::stop_callback wake(stop, [this] { look_again(); });
    std::unique_lock lock(mutex_);
    auto found = items_.end();
    const auto is_there = [&] {
      found = items_.end();
      std::optional<std::uint64_t> lowest;
      for (auto item = items_.begin(); item != items_.end(); ++item) {
        const std::optional<std::uint64_t> number = rank(*item);
        if (!number || (lowest && *number >= *lowest)) continue;
        lowest = number;
        found = item;
      }
      return found != items_.end();
    };
    ready_.wait(lock, [&] { return stop.stop_requested() || is_there(); });
    if (stop.stop_requested()) return std::nullopt;
    std::optional<T> value(std::move(*found));
    items_.erase(found);
    taken(*value);
    return value;
  }
  void look_again() {
    {
      // With the lock, a thread that found nothing is already waiting and gets the notification.
      const std::lock_guard lock(mutex_);
    }
    ready_.notify_all();
  }

  std::optional<T> try_pop() {
    std::unique_lock lock(mutex_);
    return take(lock);
  }

  /// Takes all values that `wanted` accepts, the oldest first.
  template <typename Wanted>
  std::vector<T> take_if(Wanted wanted) {
    std::vector<T> taken;
    std::lock_guard lock(mutex_);
    const auto first =
        std::stable_partition(items_.begin(), items_.end(), [&](const T& item) { return !wanted(item); });
    taken.assign(std::make_move_iterator(first), std::make_move_iterator(items_.end()));
    items_.erase(first, items_.end());
    return taken;
  }

  [[nodiscard]] std::size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }

  /// How many values try_push() has refused since the start.
  [[nodiscard]] std::uint64_t refused() const {
    std::lock_guard lock(mutex_);
    return refused_;
  }

 private:
  bool push(T&& value, bool front) {
    {
      std::lock_guard lock(mutex_);
      if (items_.size() >= capacity_) {
        ++refused_;
        return false;
      }
      if (front)
        items_.push_front(std::move(value));
      else
        items_.push_back(std::move(value));
    }
    ready_.notify_one();
    return true;
  }

  std::optional<T> take(std::unique_lock<std::mutex>&) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> value(std::move(items_.front()));
    items_.pop_front();
    return value;
  }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<T> items_;
  std::uint64_t refused_ = 0;
};

}  // namespace flamed
