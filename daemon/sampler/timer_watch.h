// SPDX-License-Identifier: Apache-2.0
//
// TimerWatch: whether one CPU's timer may have died. After hotplug or suspend an event can be enabled again, the kernel
// says 0, and it samples nothing. Silence alone proves nothing, since idle is not sampled, and asking the timer itself
// interrupts its CPU: it is asked when its CPU goes silent, and again when that uses CPU time and stays silent.
//
// Belongs to the reader thread. Knows no kernel: it is told what to judge by.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace flamed::daemon {

class TimerWatch {
 public:
  /// CPU time for which samples would have come (the kernel accounts it in steps of 10 ms, some of which are too much).
  static constexpr std::int64_t kWorthAskingNs = 30 * kNsPerMs;
  /// After so many periods of CPU time without any sample it is dead whatever it says.
  static constexpr std::int64_t kSurePeriods = 50;

  /// Read at one moment, every few seconds.
  struct Signs {
    MonotonicTime now;
    std::uint64_t taken = 0;                ///< samples on this CPU since start
    std::optional<MonotonicTime> newest{};  ///< time of the newest sample that was drained
    std::optional<std::int64_t> busy_ns{};  ///< CPU time used on this CPU since boot; needed where is_quiet()
  };
  enum class Verdict : std::uint8_t {
    kWell,
    kAsk,   ///< the timer is to be asked whether it runs, and the answer told to alive()
    kDead,  ///< it is to be opened again
  };

  /// The timer was begun `now`, when its CPU's counts stood like this.
  TimerWatch(MonotonicTime now, std::int64_t period_ns, std::uint64_t taken);

  /// No sample came lately: judging needs the CPU's accounts.
  [[nodiscard]] bool is_quiet(const Signs& signs) const;
  Verdict look(const Signs& signs);
  /// The timer says that it runs.
  void alive(MonotonicTime now);

  /// Up to here nothing is missing.
  [[nodiscard]] MonotonicTime alive_until() const { return alive_until_; }

 private:
  std::int64_t period_ns_;
  std::uint64_t taken_;
  MonotonicTime alive_until_;
  std::optional<std::int64_t> busy_ns_{};  ///< at the last look, if it was silent then
  std::int64_t unasked_ns_ = 0;            ///< CPU time without samples since the timer was last known to run
  std::int64_t silent_ns_ = 0;             ///< the same since the last sample
};

}  // namespace flamed::daemon
