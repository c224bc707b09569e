// SPDX-License-Identifier: Apache-2.0
//
// What the exact mode of waiting may cost.
#include "daemon/waits/off_cpu_pace.h"

#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr double kShare = 0.01;
constexpr double kCpus = 4;
/// Of a quarter of a second of four CPUs.
constexpr std::int64_t kMostNs = 10 * kNsPerMs;

struct Machine {
  /// A quarter of a second with so many switches and so much time for stacks.
  void go_on(std::uint64_t switches, std::int64_t stacks_ns, std::uint64_t no_room = 0) {
    reading.now.ns += OffCpuPace::kBetweenLooksNs;
    reading.switches += switches;
    reading.program_ns += stacks_ns / 2;
    reading.daemon_ns += stacks_ns - stacks_ns / 2;
    reading.no_room += no_room;
    pace.look(reading);
  }
  OffCpuPace::Reading reading{};
  OffCpuPace pace{kShare, kCpus, {}};
};

TEST_CASE("within its share the exact mode takes a stack for each 10 ms") {
  Machine machine;
  CHECK_FALSE(machine.pace.is_due({OffCpuPace::kBetweenLooksNs - 1}));
  CHECK(machine.pace.is_due({OffCpuPace::kBetweenLooksNs}));
  for (int i = 0; i < 100; ++i) machine.go_on(10'000, kMostNs / 2);
  CHECK(machine.pace.period_ns() == 10 * kNsPerMs);
  CHECK_FALSE(machine.pace.is_ended());
  CHECK(machine.pace.used() < kShare);
}

TEST_CASE("stacks that cost too much, or for which there is no room, become fewer, and do not end it") {
  Machine machine;
  machine.go_on(0, 2 * kMostNs);
  CHECK(machine.pace.period_ns() == 40 * kNsPerMs);
  machine.go_on(0, kMostNs / 2, 1);
  CHECK(machine.pace.period_ns() == 160 * kNsPerMs);
  machine.go_on(0, kMostNs / 2);
  CHECK(machine.pace.period_ns() == 160 * kNsPerMs);
  CHECK_FALSE(machine.pace.is_ended());
}

TEST_CASE("it ends if the fewest stacks still cost too much") {
  Machine machine;
  int looks = 0;
  for (; looks < 20 && !machine.pace.is_ended(); ++looks) machine.go_on(0, 2 * kMostNs);
  CHECK(machine.pace.period_ns() == OffCpuPace::kLongestPeriodNs);
  CHECK(looks == 5);
}

TEST_CASE("it ends if the machine's switches alone cost too much, at two looks in a row") {
  Machine machine;
  const auto too_many = static_cast<std::uint64_t>(2 * kMostNs / OffCpuPace::kSwitchNs);
  machine.go_on(too_many, 0);
  CHECK_FALSE(machine.pace.is_ended());
  machine.go_on(0, 0);
  machine.go_on(too_many, 0);
  CHECK_FALSE(machine.pace.is_ended());
  machine.go_on(too_many, 0);
  CHECK(machine.pace.is_ended());
}

}  // namespace
}  // namespace flamed::daemon
