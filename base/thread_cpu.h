// SPDX-License-Identifier: Apache-2.0
//
// ThreadCpu: a thread's CPU time, readable by other threads.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <thread>

#include "base/clock.h"

namespace flamed {

/// Of a CPU-time clock (clock_gettime(2)), in nanoseconds; 0 when its thread has ended.
inline std::int64_t read_cpu_clock(clockid_t clock) {
  timespec used{};
  if (::clock_gettime(clock, &used) != 0) return 0;
  return used.tv_sec * kNsPerSecond + used.tv_nsec;
}

class ThreadCpu {
 public:
  ThreadCpu() = default;
  explicit ThreadCpu(std::jthread& thread) {
    clockid_t clock{};
    if (::pthread_getcpuclockid(thread.native_handle(), &clock) == 0) clock_ = clock;
  }

  [[nodiscard]] std::int64_t ns() const { return clock_ ? read_cpu_clock(*clock_) : 0; }

 private:
  std::optional<clockid_t> clock_;
};

}  // namespace flamed
