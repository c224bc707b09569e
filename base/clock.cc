// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <ctime>

namespace flamed {
namespace {

std::int64_t read_clock(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return static_cast<std::int64_t>(now.tv_sec) * kNsPerSecond + now.tv_nsec;
}

}  // namespace

MonotonicTime SystemClock::monotonic() const { return {read_clock(CLOCK_MONOTONIC)}; }
WallTime SystemClock::wall() const { return {read_clock(CLOCK_REALTIME)}; }

std::int64_t SystemClock::boottime_ns() const { return read_clock(CLOCK_BOOTTIME); }

}  // namespace flamed
