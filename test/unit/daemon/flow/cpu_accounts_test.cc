// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/cpu_accounts.h"

#include <string>

#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::daemon {
namespace {

constexpr std::int64_t kWallNs = 29'000'000 * kNsPerMinute;
constexpr std::int64_t kBootNs = 10'000 * kNsPerSecond;
constexpr std::uint64_t kTicksPerSecond = 100;

/// A machine whose processes use CPU at a steady rate while the test lets time pass.
class Machine {
 public:
  explicit Machine(const CpuAccounts::Limits& limits = {}) : accounts(limits, clock_, proc_.path()) { put(); }

  /// `started_s` is in seconds after the test's first moment, and may be negative.
  ProcessId add(std::int32_t pid, std::int64_t started_s, std::uint64_t cpu_s = 0) {
    const ProcessId id{pid, static_cast<std::uint64_t>((kBootNs / kNsPerSecond + started_s)) * kTicksPerSecond};
    processes_.push_back({id, cpu_s * kTicksPerSecond, 0});
    put();
    return id;
  }
  void use(const ProcessId& id, double cpus) {
    for (Load& load : processes_) {
      if (load.id == id) load.cpus = cpus;
    }
  }
  void end(const ProcessId& id) {
    std::erase_if(processes_, [&](const Load& load) { return load.id == id; });
    proc_.remove(id.pid);
  }
  /// A process that uses CPU is sampled.
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.advance_ns(kNsPerSecond);
      for (Load& load : processes_) {
        const auto ticks = static_cast<std::uint64_t>(load.cpus * kTicksPerSecond);
        load.ticks += ticks;
        busy_ticks_ += ticks;
        if (ticks != 0) accounts.saw(load.id);
      }
      // Nothing is read between readings.
      const bool due = clock_.wall().ns % CpuAccounts::kIntervalNs < kNsPerSecond;
      if (due || i + 1 == seconds) put();
      accounts.advance(clock_.monotonic());
    }
  }
  void step_clock(std::int64_t seconds) { clock_.step_wall_ns(seconds * kNsPerSecond); }

  /// Seconds of CPU time from one second of the test to another; -1 if unknown.
  [[nodiscard]] double used(const ProcessId& id, std::int64_t from_s, std::int64_t to_s,
                            std::optional<std::int64_t> ended_s = std::nullopt) const {
    store::ProcessInfo info;
    info.id = id;
    if (ended_s) info.ended = at(*ended_s);
    return told(accounts.process({at(from_s), at(to_s)}, info));
  }
  [[nodiscard]] double busy(std::int64_t from_s, std::int64_t to_s) const {
    return told(accounts.machine({at(from_s), at(to_s)}));
  }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  struct Load {
    ProcessId id;
    std::uint64_t ticks = 0;
    double cpus = 0;
  };
  static WallTime at(std::int64_t second) { return {kWallNs + second * kNsPerSecond}; }
  double told(const api::CpuAccount& account) const {
    reason_ = account.reason;
    CHECK(account.ns.has_value() == account.reason.empty());
    return account.ns ? static_cast<double>(*account.ns) / kNsPerSecond : -1;
  }
  void put() const {
    for (const Load& load : processes_) {
      test::FakeProcess process;
      process.pid = load.id.pid;
      process.start_ticks = load.id.start_ticks;
      process.user_ticks = load.ticks / 2;
      process.system_ticks = load.ticks - load.ticks / 2;
      proc_.directory().write(std::to_string(process.pid) + "/stat", test::stat_line(process));
    }
    proc_.directory().write("stat", "cpu  " + std::to_string(busy_ticks_) + " 0 0 77 88 5 6 7 0 0\ncpu0 1 2 3\n");
  }

  test::FakeProc proc_;
  ManualClock clock_{{kBootNs}, {kWallNs}};
  std::vector<Load> processes_;
  std::uint64_t busy_ticks_ = 123'456;
  mutable std::string reason_;

 public:
  CpuAccounts accounts;
};

TEST_CASE("CPU time between two readings counts in proportion to the time") {
  Machine machine;
  const ProcessId id = machine.add(42, -500, 300);
  machine.accounts.begin();
  machine.use(id, 2);
  machine.pass(100);
  CHECK(machine.used(id, 20, 50) == Approx(60).epsilon(0.001));
  CHECK(machine.used(id, 21, 22) == Approx(2).epsilon(0.001));
  CHECK(machine.busy(20, 50) == Approx(60).epsilon(0.001));
}

TEST_CASE("the moment before the beginning of sampling counts neither as sampled nor as used") {
  Machine machine;
  const ProcessId id = machine.add(42, -500, 300);
  machine.accounts.begin();
  machine.use(id, 1);
  machine.pass(60);
  CHECK(machine.used(id, -4, 30) == Approx(30).epsilon(0.001));
  CHECK(machine.busy(-4, 30) == Approx(30).epsilon(0.001));
}

TEST_CASE("a window that an earlier run has sampled is not known") {
  Machine machine;
  const ProcessId id = machine.add(42, -500, 300);
  machine.accounts.begin();
  machine.use(id, 1);
  machine.pass(60);
  CHECK(machine.used(id, -40, 30) < 0);
  CHECK(machine.reason().find("process 42 was not read before the window began") != std::string::npos);
  CHECK(machine.used({43, 7}, -40, -20, -10) < 0);
  CHECK(machine.reason() == "process 43 ended before flamed was started, and its CPU time is not on disk");
  CHECK(machine.busy(-40, 30) < 0);
  CHECK(machine.reason().find("not read before the window began") != std::string::npos);
}

TEST_CASE("a process without samples for a long time used its CPU time after that, not evenly") {
  Machine machine;
  const ProcessId id = machine.add(42, -500, 300);
  machine.accounts.begin();
  machine.pass(600);
  machine.use(id, 1);
  machine.pass(60);
  CHECK(machine.used(id, 0, 590) == Approx(0).margin(0.001));
  CHECK(machine.used(id, 590, 660) == Approx(60).epsilon(0.001));
  CHECK(machine.used(id, 600, 615) == Approx(15).margin(7.5));
}

TEST_CASE("a process counts from 0 at its start") {
  Machine machine;
  machine.accounts.begin();
  machine.pass(33);
  const ProcessId id = machine.add(42, 33);
  machine.use(id, 1);
  SECTION("before its first reading") {
    machine.pass(3);
    CHECK(machine.used(id, 0, 36) == Approx(3).epsilon(0.001));
  }
  SECTION("and after it") {
    machine.pass(60);
    CHECK(machine.used(id, 0, 80) == Approx(47).epsilon(0.001));
  }
}

TEST_CASE("a query for a window that ends after the last reading reads the account") {
  Machine machine;
  const ProcessId id = machine.add(42, -500, 300);
  machine.accounts.begin();
  machine.use(id, 1);
  machine.pass(34);
  CHECK(machine.used(id, 10, 34) == Approx(24).epsilon(0.001));
  CHECK(machine.busy(10, 34) == Approx(24).epsilon(0.001));
}

TEST_CASE("a process that ended between readings is unknown, unless the part without a reading hardly counts") {
  Machine machine;
  const ProcessId id = machine.add(42, -500, 300);
  machine.accounts.begin();
  machine.use(id, 1);
  machine.pass(634);
  machine.end(id);
  machine.pass(30);
  CHECK(machine.used(id, 610, 660, 634) == -1);
  CHECK(machine.reason().find("ended between readings") != std::string::npos);
  CHECK(machine.used(id, 0, 660, 634) == Approx(634).epsilon(0.01));
  CHECK(machine.used(id, 600, 620, 634) == Approx(20).epsilon(0.001));
}

TEST_CASE("an end that was reported is not looked up in /proc, and has the same result") {
  Machine machine;
  const ProcessId id = machine.add(42, -500, 300);
  machine.accounts.begin();
  machine.use(id, 1);
  machine.pass(634);
  machine.accounts.ended(id);
  machine.use(id, 0);
  machine.pass(30);
  // Its file still exists, and is not read.
  CHECK(machine.used(id, 610, 660, 634) == -1);
  CHECK(machine.reason().find("ended between readings") != std::string::npos);
  CHECK(machine.used(id, 600, 620, 634) == Approx(20).epsilon(0.001));
}

TEST_CASE("a process that stopped using CPU before it ended is known to its end") {
  Machine machine;
  const ProcessId id = machine.add(42, -500, 300);
  machine.accounts.begin();
  machine.use(id, 1);
  machine.pass(30);
  machine.use(id, 0);
  machine.pass(40);
  machine.end(id);
  machine.pass(30);
  CHECK(machine.used(id, 10, 90, 70) == Approx(20).epsilon(0.001));
}

TEST_CASE("a process that ended before its first reading is unknown, and so is another with its pid") {
  Machine machine;
  machine.accounts.begin();
  const ProcessId first = machine.add(42, 0);
  machine.use(first, 1);
  machine.pass(2);
  machine.end(first);
  machine.pass(1);
  const ProcessId second = machine.add(42, 3);
  machine.use(second, 1);
  machine.pass(30);
  CHECK(machine.used(first, 0, 20, 2) == -1);
  CHECK(machine.reason().find("ended before") != std::string::npos);
  CHECK(machine.used(second, 0, 30) == Approx(27).epsilon(0.001));
}

TEST_CASE("after a step of the clock, accounts begin anew, and windows from before have none") {
  Machine machine;
  const ProcessId id = machine.add(42, -500, 300);
  machine.accounts.begin();
  machine.use(id, 1);
  machine.pass(60);
  machine.step_clock(3600);
  machine.pass(60);
  CHECK(machine.used(id, 20, 3700) == -1);
  CHECK(machine.busy(20, 3700) == -1);
  CHECK(machine.reason().find("clock was set") != std::string::npos);
  CHECK(machine.used(id, 3680, 3710) == Approx(30).epsilon(0.001));
}

TEST_CASE("old readings are thinned out to one a minute") {
  Machine machine;
  const ProcessId id = machine.add(42, -500, 300);
  machine.accounts.begin();
  machine.use(id, 1);
  machine.pass(3 * 3600);
  // Two hours of minutes and one of intervals, and a vector's spare capacity.
  CHECK(machine.accounts.stats().bytes < 2 * (120 + 60 * 9) * 16);
  CHECK(machine.used(id, 600, 1800) == Approx(1200).epsilon(0.001));
}

TEST_CASE("readings beyond the retention are dropped; a running process without samples stays known") {
  Machine machine({.retention_ns = 30 * kNsPerMinute, .budget_bytes = 8U << 20});
  const ProcessId busy = machine.add(42, -500, 300);
  const ProcessId silent = machine.add(43, -500, 300);
  const ProcessId gone = machine.add(44, -500, 300);
  machine.accounts.begin();
  machine.use(busy, 1);
  machine.pass(600);
  machine.end(gone);
  machine.pass(3600);
  CHECK(machine.accounts.stats().processes == 2);
  CHECK(machine.used(silent, 3000, 4000) == 0);
  CHECK(machine.used(busy, 3000, 4000) == Approx(1000).epsilon(0.001));
}

TEST_CASE("within a small budget the newest readings are kept, and dropped ones are not estimated") {
  Machine machine({.retention_ns = 24 * 60 * kNsPerMinute, .budget_bytes = 20'000});
  std::vector<ProcessId> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(machine.add(100 + i, -500, 300));
  machine.accounts.begin();
  for (const ProcessId& id : ids) machine.use(id, 0.1);
  machine.pass(1800);
  CHECK(machine.accounts.stats().bytes <= 20'000);
  CHECK(machine.used(ids[7], 1700, 1790) == Approx(9).epsilon(0.01));
  CHECK(machine.used(ids[7], 100, 1790) == -1);
}

TEST_CASE("a machine whose /proc/stat cannot be read says so") {
  const test::TemporaryDirectory nothing;
  const ManualClock clock({kBootNs}, {kWallNs});
  CpuAccounts accounts({}, clock, nothing.path().string());
  accounts.begin();
  const api::CpuAccount account = accounts.machine({{kWallNs - kNsPerMinute}, {kWallNs}});
  CHECK_FALSE(account.ns);
  CHECK(account.reason.find("/proc/stat") != std::string::npos);
}

}  // namespace
}  // namespace flamed::daemon
