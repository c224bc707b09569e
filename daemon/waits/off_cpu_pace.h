// SPDX-License-Identifier: Apache-2.0
//
// OffCpuPace: keeps what the exact mode of waiting costs within a share of all CPU time: first by fewer stacks, and if
// that is not enough, by its end. No clock, no system calls. Belongs to one thread.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "bpf/off_cpu.h"

namespace flamed::daemon {

class OffCpuPace {
 public:
  /// What the program costs a switch between threads that are not selected, which it does not measure itself
  /// (test/bench/waits/off_cpu_cost.py).
  static constexpr std::int64_t kSwitchNs = 60;
  static constexpr std::int64_t kFirstPeriodNs = FLAMED_FIRST_PERIOD_NS;
  static constexpr std::int64_t kLongestPeriodNs = 256 * kFirstPeriodNs;
  static constexpr std::int64_t kBetweenLooksNs = kNsPerSecond / 4;

  /// Since any time before.
  struct Reading {
    MonotonicTime now;
    std::uint64_t switches = 0;   ///< of all CPUs
    std::int64_t program_ns = 0;  ///< for threads of the selection
    std::int64_t daemon_ns = 0;   ///< of the daemon, for their stacks
    std::uint64_t no_room = 0;    ///< records that were lost
  };

  /// `share`: of the time of all `cpus`.
  OffCpuPace(double share, double cpus, const Reading& first) : share_(share), cpus_(cpus), last_(first) {}

  /// Is it time to look again?
  [[nodiscard]] bool is_due(MonotonicTime now) const { return now.ns - last_.now.ns >= kBetweenLooksNs; }
  void look(const Reading& now) {
    const std::int64_t elapsed_ns = now.now.ns - last_.now.ns;
    const auto switches_ns = static_cast<double>((now.switches - last_.switches) * kSwitchNs);
    const auto stacks_ns = static_cast<double>(now.program_ns - last_.program_ns + now.daemon_ns - last_.daemon_ns);
    const double all_ns = static_cast<double>(elapsed_ns) * cpus_;
    used_ = (switches_ns + stacks_ns) / all_ns;
    const bool is_over = used_ > share_;
    if (is_over && (period_ns_ >= kLongestPeriodNs || (was_over_ && switches_ns > share_ * all_ns))) is_ended_ = true;
    if ((is_over || now.no_room != last_.no_room) && period_ns_ < kLongestPeriodNs) period_ns_ *= 4;
    was_over_ = is_over;
    last_ = now;
  }

  /// A stack for each so long a time of waiting.
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }
  /// It costs too much even with the fewest stacks.
  [[nodiscard]] bool is_ended() const { return is_ended_; }
  /// The share that it took at the last look.
  [[nodiscard]] double used() const { return used_; }

 private:
  const double share_;
  const double cpus_;
  Reading last_;
  std::int64_t period_ns_ = kFirstPeriodNs;
  double used_ = 0;
  bool was_over_ = false;
  bool is_ended_ = false;
};

}  // namespace flamed::daemon
