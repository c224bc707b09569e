// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/timer_watch.h"

#include "test/catch.h"

namespace flamed::daemon {
namespace {

using Verdict = TimerWatch::Verdict;

constexpr std::int64_t kPeriodNs = 10 * kNsPerMs;

/// One CPU that is checked once a second.
struct Cpu {
  /// A second with this many samples, the last of them `quiet_ms` before the check, and this much busy time.
  Verdict second(std::uint64_t samples, std::int64_t quiet_ms, std::int64_t busy_ms) {
    signs.now.ns += kNsPerSecond;
    signs.taken += samples;
    if (samples != 0) signs.newest = MonotonicTime{signs.now.ns - quiet_ms * kNsPerMs};
    signs.busy_ns = *signs.busy_ns + busy_ms * kNsPerMs;
    return watch.look(signs);
  }
  [[nodiscard]] std::int64_t missing_ms() const { return (signs.now.ns - watch.alive_until().ns) / kNsPerMs; }

  TimerWatch::Signs signs{MonotonicTime{100 * kNsPerSecond}, 0, std::nullopt, 5 * kNsPerSecond};
  TimerWatch watch{signs.now, kPeriodNs, 0};
};

TEST_CASE("a timer with samples is not queried") {
  Cpu cpu;
  for (int i = 0; i < 5; ++i) {
    CHECK(cpu.second(100, 5, 1000) == Verdict::kWell);
    CHECK(cpu.missing_ms() == 0);
  }
}

TEST_CASE("an idle CPU's timer is queried once, when it falls silent, and then left alone") {
  Cpu cpu;
  cpu.second(100, 5, 1000);
  CHECK(cpu.second(40, 600, 400) == Verdict::kAsk);
  CHECK(cpu.missing_ms() == 600);
  cpu.watch.alive(cpu.signs.now);
  for (int i = 0; i < 100; ++i) CHECK(cpu.second(0, 0, 0) == Verdict::kWell);
  CHECK(cpu.missing_ms() == 0);
}

TEST_CASE("the timer of a nearly idle CPU is not queried, since next to nothing can be missing") {
  Cpu cpu;
  cpu.second(0, 0, 0);
  for (int i = 0; i < 100; ++i) {
    CHECK(cpu.second(2, 700, 20) == Verdict::kWell);
    CHECK(cpu.missing_ms() == 0);
  }
}

TEST_CASE("a timer that died in the middle of a busy second is queried at the next check") {
  Cpu cpu;
  cpu.second(100, 5, 1000);
  CHECK(cpu.second(30, 700, 1000) == Verdict::kAsk);
  CHECK(cpu.missing_ms() == 700);
}

TEST_CASE("a timer that died while its CPU was idle is queried once the CPU is busy again") {
  Cpu cpu;
  cpu.second(40, 600, 400);
  cpu.watch.alive(cpu.signs.now);
  for (int i = 0; i < 3; ++i) CHECK(cpu.second(0, 0, 0) == Verdict::kWell);
  CHECK(cpu.second(0, 0, 50) == Verdict::kAsk);
  CHECK(cpu.missing_ms() == 1000);
}

TEST_CASE("single ticks of accounting on an idle CPU add up before the timer is queried") {
  Cpu cpu;
  cpu.second(0, 0, 0);
  CHECK(cpu.second(0, 0, 10) == Verdict::kWell);
  CHECK(cpu.second(0, 0, 10) == Verdict::kWell);
  CHECK(cpu.second(0, 0, 10) == Verdict::kAsk);
  cpu.watch.alive(cpu.signs.now);
  CHECK(cpu.second(0, 0, 10) == Verdict::kWell);
}

TEST_CASE("a timer that claims to run but takes no samples of a busy CPU is dead") {
  Cpu cpu;
  cpu.second(100, 5, 1000);
  CHECK(cpu.second(10, 900, 1000) == Verdict::kAsk);
  cpu.watch.alive(cpu.signs.now);
  CHECK(cpu.second(0, 0, 400) == Verdict::kAsk);
  cpu.watch.alive(cpu.signs.now);
  CHECK(cpu.second(0, 0, 400) == Verdict::kDead);
}

TEST_CASE("at one sample a second, two seconds without any are not silence") {
  TimerWatch watch(MonotonicTime{0}, kNsPerSecond, 0);
  TimerWatch::Signs signs{MonotonicTime{10 * kNsPerSecond}, 5, MonotonicTime{8 * kNsPerSecond}, {}};
  CHECK_FALSE(watch.is_quiet(signs));
}

}  // namespace
}  // namespace flamed::daemon
