// SPDX-License-Identifier: Apache-2.0
//
// TimerWatch: detects that one CPU's timer has died. After hotplug or suspend, enabling an event again may succeed
// without any samples following. Missing samples alone prove nothing, since idle is not sampled, and reading the timer
// interrupts its CPU: it is read when its CPU has no samples any more, and again when the CPU uses CPU time and still
// has none.
//
// Belongs to the reader thread. Makes no system calls: its inputs are arguments.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace flamed::daemon {

class TimerWatch {
 public:
  /// CPU time that would have given samples (the kernel accounts in steps of 10 ms, some of them too much).
  static constexpr std::int64_t kWorthAskingNs = 30 * kNsPerMs;
  /// After so many periods of CPU time without any sample it is dead, even if it reports otherwise.
  static constexpr std::int64_t kSurePeriods = 50;

  /// Read at one moment, every few seconds.
  struct Signs {
    MonotonicTime now;
    std::uint64_t taken = 0;                ///< samples on this CPU since start
    std::optional<MonotonicTime> newest{};  ///< time of the newest drained sample
    std::optional<std::int64_t> busy_ns{};  ///< CPU time used on this CPU since boot; needed if is_quiet()
  };
  enum class Verdict : std::uint8_t {
    kWell,
    kAsk,   ///< read the timer; if it runs, call alive()
    kDead,  ///< open it again
  };

  /// The timer was started at `now`, with this count of samples on its CPU.
  TimerWatch(MonotonicTime now, std::int64_t period_ns, std::uint64_t taken);

  /// There was no sample lately: judging needs the CPU's accounts.
  [[nodiscard]] bool is_quiet(const Signs& signs) const;
  Verdict look(const Signs& signs);
  /// The timer reports that it runs.
  void alive(MonotonicTime now);

  /// No samples are missing before this.
  [[nodiscard]] MonotonicTime alive_until() const { return alive_until_; }

 private:
  std::int64_t period_ns_;
  std::uint64_t taken_;
  MonotonicTime alive_until_;
  std::optional<std::int64_t> busy_ns_{};  ///< at the last check, if there were no samples then
  std::int64_t unasked_ns_ = 0;            ///< CPU time without samples since the timer was last known to run
  std::int64_t silent_ns_ = 0;             ///< the same since the last sample
};

}  // namespace flamed::daemon
