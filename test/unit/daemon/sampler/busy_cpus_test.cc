// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/busy_cpus.h"

#include <string>

#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

using Used = BusyCpus::Used;

constexpr std::int64_t kNsPerTick = 10 * kNsPerMs;

/// Two CPUs. A test sets what they do by their numbers.
struct Machine {
  void put(int first_ticks, int second_ticks, const std::string& idle_seconds) const {
    const std::string first = std::to_string(first_ticks);
    const std::string second = std::to_string(second_ticks);
    proc.write("stat", "cpu  " + std::to_string(first_ticks + second_ticks) + " 0 0 9 0 0 0 0 0 0\ncpu0 " + first +
                           " 0 0 4 0 0 0 0 0 0\ncpu1 " + second + " 0 0 5 0 0 0 0 0 0\nintr 7 8 9\n");
    proc.write("uptime", "1000.00 " + idle_seconds + "\n");
  }

  test::TemporaryDirectory proc;
  ManualClock clock{{1'000 * kNsPerSecond}, {2'000 * kNsPerSecond}};
};

TEST_CASE("each CPU's time is read again once all together have used enough to matter") {
  Machine machine;
  machine.put(100, 200, "50.00");
  BusyCpus cpus(30 * kNsPerMs, machine.clock, machine.proc.path().string());
  const Used first{{0, 100 * kNsPerTick}, {1, 200 * kNsPerTick}};
  CHECK(cpus.read(2) == first);

  SECTION("not after a second in which both were idle but for 20 ms") {
    machine.clock.advance_ns(kNsPerSecond);
    machine.put(101, 201, "51.98");
    CHECK(cpus.read(2) == first);
    // Nor after many such seconds.
    machine.clock.advance_ns(kNsPerSecond);
    machine.put(102, 202, "53.96");
    CHECK(cpus.read(2) == Used{{0, 102 * kNsPerTick}, {1, 202 * kNsPerTick}});
  }
  SECTION("after a second in which they were not") {
    machine.clock.advance_ns(kNsPerSecond);
    machine.put(102, 201, "51.97");
    CHECK(cpus.read(2) == Used{{0, 102 * kNsPerTick}, {1, 201 * kNsPerTick}});
  }
  SECTION("when the kernel's sum of idle time jumps ahead of the clock") {
    machine.put(101, 200, "50.03");
    CHECK(cpus.read(2) == Used{{0, 101 * kNsPerTick}, {1, 200 * kNsPerTick}});
  }
  SECTION("when there are other CPUs than before") {
    machine.put(101, 200, "50.00");
    CHECK(cpus.read(1) == Used{{0, 101 * kNsPerTick}, {1, 200 * kNsPerTick}});
  }
  SECTION("when the kernel does not say how long they were idle") {
    machine.put(101, 200, "");
    CHECK(cpus.read(2) == Used{{0, 101 * kNsPerTick}, {1, 200 * kNsPerTick}});
    machine.put(102, 200, "");
    CHECK(cpus.read(2) == Used{{0, 102 * kNsPerTick}, {1, 200 * kNsPerTick}});
  }
}

TEST_CASE("text that can't be read as CPU time yields nothing, and nothing is kept") {
  Machine machine;
  machine.put(100, 200, "50.00");
  machine.proc.write("stat", "something else\n");
  BusyCpus cpus(30 * kNsPerMs, machine.clock, machine.proc.path().string());
  CHECK(cpus.read(2).empty());
  machine.put(100, 200, "50.00");
  CHECK(cpus.read(2) == Used{{0, 100 * kNsPerTick}, {1, 200 * kNsPerTick}});

  BusyCpus without(30 * kNsPerMs, machine.clock, machine.proc.path("nowhere"));
  CHECK(without.read(2).empty());
}

}  // namespace
}  // namespace flamed::daemon
