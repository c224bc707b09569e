// SPDX-License-Identifier: Apache-2.0
//
// Time. Samples and slots live on CLOCK_MONOTONIC; queries use wall-clock time.
#pragma once

#include <compare>
#include <cstdint>

namespace flamed {

/// A point on CLOCK_MONOTONIC, in nanoseconds.
struct MonotonicTime {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(MonotonicTime, MonotonicTime) = default;
};

/// A point on the wall clock, in nanoseconds since 1970-01-01T00:00:00Z.
struct WallTime {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(WallTime, WallTime) = default;
};

inline constexpr std::int64_t kNsPerUs = 1'000;
inline constexpr std::int64_t kNsPerMs = 1'000'000;
inline constexpr std::int64_t kNsPerSecond = 1'000'000'000;
inline constexpr std::int64_t kNsPerMinute = 60 * kNsPerSecond;

/// The source of time. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual MonotonicTime monotonic() const = 0;
  [[nodiscard]] virtual WallTime wall() const = 0;
  /// CLOCK_BOOTTIME in nanoseconds: like monotonic(), but it also counts time in suspend. The kernel's start times of
  /// processes are on it.
  [[nodiscard]] virtual std::int64_t boottime_ns() const = 0;

  /// wall - monotonic, now. Changes when the wall clock is stepped or the machine was suspended.
  [[nodiscard]] std::int64_t wall_offset_ns() const { return wall().ns - monotonic().ns; }
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] MonotonicTime monotonic() const override;
  [[nodiscard]] WallTime wall() const override;
  [[nodiscard]] std::int64_t boottime_ns() const override;
};

}  // namespace flamed
