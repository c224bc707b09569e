// SPDX-License-Identifier: Apache-2.0
#include "daemon/budget/cpu_governor.h"

#include <algorithm>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr double kBudget = 0.003;

/// A machine with four CPUs on which each second costs what the test sets. `at_99` is the share of all CPUs' time that
/// sampling at 99 Hz would take; other frequencies cost in proportion.
class Machine {
 public:
  explicit Machine(std::optional<double> budget = kBudget, unsigned hz = 99, bool is_beginning = false)
      : governor(hz, budget) {
    governor.look(reading_);
    if (!is_beginning) run(CpuGovernor::kBeginningNs / kNsPerSecond, {.at_99 = 0});
  }

  struct Load {
    double at_99 = 0.0005;
    double fixed = 0;      ///< the cost of sampling at any frequency
    double processes = 0;  ///< the daemon's cost of processes that begin and end
    double names = 0;      ///< the cost at 99 Hz of names that samples wait for; half of it at any frequency
    double background = 0;
    double answers = 0;
    double skipping = 0;
  };
  void run(std::int64_t seconds, const Load& load) {
    for (int i = 0; i < seconds; ++i) {
      const double sampling = load.fixed + load.at_99 * governor.frequency_hz() / 99;
      const auto ns_of = [](double share) { return static_cast<std::int64_t>(share * 4 * kNsPerSecond); };
      reading_.now.ns += kNsPerSecond;
      reading_.program_ns += ns_of(sampling) / 2;
      reading_.daemon_ns += ns_of(sampling) - ns_of(sampling) / 2 + ns_of(load.processes);
      reading_.names_ns += ns_of(load.names * (1 + governor.frequency_hz() / 99) / 2);
      if (governor.background_may_go_on()) reading_.background_ns += ns_of(load.background);
      reading_.answers_ns += ns_of(load.answers);
      reading_.skipping_ns += ns_of(load.skipping);
      governor.look(reading_);
      lowest_hz = std::min(lowest_hz, governor.frequency_hz());
    }
  }
  /// The time spent in the background since `before`, as a share of all CPUs' time.
  [[nodiscard]] double background_since(const CostReading& before) const {
    return static_cast<double>(reading_.background_ns - before.background_ns) /
           static_cast<double>(reading_.now.ns - before.now.ns) / 4;
  }
  /// Of all but answers, likewise.
  [[nodiscard]] double cost_since(const CostReading& before) const {
    const auto cost = [](const CostReading& reading) {
      return reading.program_ns + reading.daemon_ns + reading.names_ns + reading.background_ns;
    };
    return static_cast<double>(cost(reading_) - cost(before)) / static_cast<double>(reading_.now.ns - before.now.ns) /
           4;
  }
  [[nodiscard]] const CostReading& reading() const { return reading_; }

  CpuGovernor governor;
  double lowest_hz = 1000;

 private:
  CostReading reading_{.now = MonotonicTime{1000 * kNsPerSecond}, .cpus = 4};
};

TEST_CASE("the frequency is halved down to 10 Hz and no further") {
  const auto lowest = [](unsigned hz) {
    Machine machine(kBudget, hz);
    machine.run(60, {.fixed = 2 * kBudget});
    return machine.governor.frequency_hz();
  };
  CHECK(lowest(99) == 12.375);
  CHECK(lowest(1000) == 15.625);
  CHECK(lowest(20) == 10);
  CHECK(lowest(19) == 19);
  CHECK(lowest(1) == 1);
}

TEST_CASE("within the budget nothing changes") {
  Machine machine;
  machine.run(600, {.at_99 = kBudget * 0.85});
  CHECK(machine.lowest_hz == 99);
  CHECK(machine.governor.lowered() == 0);
  CHECK(machine.governor.background_may_go_on());
}

TEST_CASE("a load that would cost three times the budget is within it after 10 s, in one step") {
  Machine machine;
  machine.run(100, {});
  machine.run(10, {.at_99 = 3 * kBudget});
  CHECK(machine.governor.frequency_hz() == 24.75);
  CHECK(machine.governor.lowered() == 1);
  CHECK(machine.governor.shares().all() < kBudget);
}

TEST_CASE("the same holds for a load that exists when sampling begins") {
  Machine machine;
  machine.run(10, {.at_99 = 3 * kBudget});
  CHECK(machine.governor.shares().all() < kBudget);
}

TEST_CASE("one costly second changes nothing") {
  Machine machine;
  machine.run(60, {});
  machine.run(1, {.at_99 = 0.05});
  machine.run(60, {});
  CHECK(machine.lowest_hz == 99);
}

TEST_CASE("a reading above the budget asks for the next one soon, as long as there is a step left") {
  Machine machine;
  machine.run(3, {});
  CHECK_FALSE(machine.governor.is_exceeded());
  machine.run(1, {.at_99 = 3 * kBudget});
  CHECK(machine.governor.is_exceeded());
  machine.run(1, {});
  CHECK_FALSE(machine.governor.is_exceeded());
  machine.run(60, {.fixed = 2 * kBudget});
  REQUIRE(machine.governor.frequency_hz() == 12.375);
  CHECK_FALSE(machine.governor.is_exceeded());

  Machine unlimited(std::nullopt);
  unlimited.run(3, {.at_99 = 3 * kBudget});
  CHECK_FALSE(unlimited.governor.is_exceeded());
}

TEST_CASE("the frequency is raised step by step when the load has gone") {
  Machine machine;
  machine.run(60, {.at_99 = 3 * kBudget});
  REQUIRE(machine.governor.frequency_hz() == 24.75);
  machine.run(35, {});
  CHECK(machine.governor.frequency_hz() == 49.5);
  machine.run(35, {});
  CHECK(machine.governor.frequency_hz() == 99);
  CHECK(machine.governor.raised() == 2);
}

TEST_CASE("a load on the edge does not make the frequency go up and down") {
  Machine machine;
  for (const double times : {1.0, 1.3, 1.6, 1.8, 2.0, 2.5, 4.0}) {
    INFO(times);
    machine.run(3600, {.at_99 = times * kBudget});
    CHECK(machine.governor.lowered() <= 4);
    CHECK(machine.governor.raised() == 0);
  }
}

TEST_CASE("what processes cost at any frequency is not taken for the cost of samples") {
  Machine machine;
  machine.run(10, {.at_99 = 3 * kBudget});
  REQUIRE(machine.governor.frequency_hz() == 24.75);
  machine.run(600, {.at_99 = 0.4 * kBudget, .processes = 0.45 * kBudget});
  CHECK(machine.governor.frequency_hz() == 49.5);
  CHECK(machine.governor.raised() == 1);
  CHECK(machine.governor.shares().all() < kBudget);
}

TEST_CASE("a raise that was taken back is not made again before all of the cost fits twice") {
  Machine machine;
  machine.run(10, {.at_99 = 1.5 * kBudget});
  REQUIRE(machine.governor.frequency_hz() == 49.5);
  machine.run(3600, {.at_99 = 0.95 * kBudget});
  CHECK(machine.governor.frequency_hz() == 49.5);
  CHECK(machine.governor.raised() == 1);
  CHECK(machine.governor.lowered() == 2);
  machine.run(100, {.at_99 = 0.6 * kBudget});
  CHECK(machine.governor.frequency_hz() == 99);
}

TEST_CASE("a load that returns after each raise of the frequency is tried ever less often") {
  Machine machine;
  for (int i = 0; i < 2 * 3600; ++i) {
    machine.run(1, {.at_99 = machine.governor.frequency_hz() == 99 ? 3 * kBudget : 0.1 * kBudget});
  }
  // 2 h hold 90 rounds of a step down and two up at the shortest pause.
  CHECK(machine.governor.lowered() < 20);
}

TEST_CASE("background work is cut first: it waits, and the frequency stays") {
  Machine machine;
  machine.run(60, {});
  machine.run(120, {.background = 0.02});
  CHECK(machine.governor.is_background_slowed());
  CHECK(machine.lowest_hz == 99);
  const CostReading before = machine.reading();
  machine.run(1200, {.background = 0.02});
  CHECK(machine.background_since(before) + 0.0005 == Approx(kBudget).epsilon(0.1));
  CHECK(machine.lowest_hz == 99);
}

TEST_CASE("names that a program needs when it begins are paid from what was saved") {
  Machine machine;
  machine.run(60, {});
  machine.run(10, {.names = 5 * kBudget});
  machine.run(600, {.names = 0.5 * kBudget});
  CHECK(machine.lowest_hz == 99);
  CHECK(machine.governor.background_may_go_on());
}

TEST_CASE("names that have just used up what was saved do not lower the frequency") {
  Machine machine;
  machine.run(60, {});
  int seconds = 0;
  for (; !machine.governor.is_background_slowed() && seconds < 100; ++seconds) machine.run(1, {.names = 5 * kBudget});
  CHECK(seconds > 10);
  machine.run(4, {.names = 5 * kBudget});
  machine.run(60, {});
  CHECK(machine.lowest_hz == 99);
}

TEST_CASE("names whose cost is told every third second count all the time") {
  Machine machine;
  machine.run(60, {});
  for (int i = 0; i < 100; ++i) {
    machine.run(1, {.at_99 = 0.8 * kBudget, .names = 3 * kBudget});
    machine.run(2, {.at_99 = 0.8 * kBudget});
  }
  CHECK(machine.lowest_hz < 99);
}

TEST_CASE("names that programs need all the time lower the frequency until they are within the budget") {
  const Machine::Load programs{.at_99 = 0.8 * kBudget, .names = kBudget};
  Machine machine;
  machine.run(300, programs);
  CHECK(machine.lowest_hz < 99);
  const CostReading before = machine.reading();
  machine.run(3600, programs);
  CHECK(machine.cost_since(before) < kBudget);
  CHECK(machine.governor.frequency_hz() == 24.75);
  machine.run(200, {});
  CHECK(machine.governor.frequency_hz() == 99);
}

TEST_CASE("where names alone take more than the budget, background work still gets a tenth of it") {
  Machine machine;
  const Machine::Load programs{.names = 4 * kBudget, .background = 0.02};
  machine.run(300, programs);
  CHECK(machine.governor.frequency_hz() == 12.375);
  const CostReading before = machine.reading();
  machine.run(3600, programs);
  CHECK(machine.background_since(before) == Approx(kBudget / 10).epsilon(0.3));
}

TEST_CASE("the cost of reading past skipped records is reported, and does not lower the frequency") {
  Machine machine;
  machine.run(120, {.at_99 = 0.001, .skipping = 3 * kBudget});
  CHECK(machine.lowest_hz == 99);
  CHECK(machine.governor.shares().sampling() == Approx(0.001).epsilon(0.01));
  CHECK(machine.governor.shares().all() == Approx(0.001 + 3 * kBudget).epsilon(0.01));
}

TEST_CASE("when sampling needs the budget, a tenth is left to background work") {
  Machine machine;
  machine.run(200, {.at_99 = 0.88 * kBudget, .background = 0.02});
  const CostReading before = machine.reading();
  machine.run(3600, {.at_99 = 0.88 * kBudget, .background = 0.02});
  CHECK(machine.background_since(before) == Approx(kBudget / 10).epsilon(0.3));
  CHECK(machine.lowest_hz == 99);
}

TEST_CASE("in the first half minute tables are built at once, and the frequency stays, whatever that costs") {
  Machine machine(kBudget, 99, true);
  machine.run(29, {.at_99 = 10 * kBudget, .background = 0.1});
  CHECK(machine.governor.background_may_go_on());
  CHECK_FALSE(machine.governor.is_background_slowed());
  CHECK_FALSE(machine.governor.is_exceeded());
  CHECK(machine.lowest_hz == 99);
  machine.run(6, {.at_99 = 10 * kBudget});
  CHECK(machine.lowest_hz < 99);
}

TEST_CASE("a budget that is set in the first half minute is kept at once") {
  Machine machine(kBudget, 99, true);
  machine.run(5, {.at_99 = kBudget});
  machine.governor.set_budget(kBudget / 2);
  machine.run(5, {.at_99 = kBudget});
  CHECK(machine.lowest_hz < 99);
}

TEST_CASE("waiting background work goes on, after ten minutes at most") {
  Machine machine;
  machine.run(60, {});
  machine.run(1, {.background = 2});
  CHECK_FALSE(machine.governor.background_may_go_on());
  machine.run(601, {.at_99 = 0});
  CHECK(machine.governor.background_may_go_on());
  machine.run(60, {});
  CHECK_FALSE(machine.governor.is_background_slowed());
}

TEST_CASE("answers change neither the frequency nor the background's share") {
  Machine machine;
  machine.run(300, {.answers = 0.3});
  CHECK(machine.lowest_hz == 99);
  CHECK(machine.governor.background_may_go_on());
  CHECK(machine.governor.shares().all() > 0.3);
}

TEST_CASE("without a budget nothing is limited") {
  Machine machine(std::nullopt);
  machine.run(300, {.at_99 = 0.5, .background = 0.5});
  CHECK(machine.lowest_hz == 99);
  CHECK(machine.governor.background_may_go_on());
}

TEST_CASE("a removal or change of the budget holds at once") {
  Machine machine;
  machine.run(60, {.at_99 = 3 * kBudget});
  REQUIRE(machine.governor.frequency_hz() == 24.75);
  machine.governor.set_budget(std::nullopt);
  CHECK(machine.governor.frequency_hz() == 99);
  machine.run(20, {.at_99 = 3 * kBudget});
  CHECK(machine.governor.frequency_hz() == 99);
  machine.governor.set_budget(4 * kBudget);
  machine.run(60, {.at_99 = 3 * kBudget});
  CHECK(machine.governor.frequency_hz() == 99);
  machine.governor.set_budget(kBudget);
  machine.run(10, {.at_99 = 3 * kBudget});
  CHECK(machine.governor.frequency_hz() == 24.75);
}

}  // namespace
}  // namespace flamed::daemon
