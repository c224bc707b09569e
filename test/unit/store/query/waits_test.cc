// SPDX-License-Identifier: Apache-2.0
//
// Waiting time in the store, and in its answers.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/model/measure.h"
#include "store/model/wait_reason.h"
#include "store/query/heatmap.h"
#include "store/query/query.h"
#include "store/query/timeline.h"
#include "store/query/usage.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

constexpr std::int64_t kSecond = kNsPerSecond;
constexpr auto kUnitsPerSecond = static_cast<std::uint64_t>(kNsPerSecond / kWaitUnitNs);

struct WaitingHost : TestStore {
  using TestStore::TestStore;

  /// A visit now, which finds the thread in such a wait.
  void visit(WaitReason reason, std::int64_t waited_ns = 0, std::optional<MonotonicTime> last_seen = {},
             std::int64_t queued_ns = 0, ProcessId process = kProcess, std::uint64_t function = 16) {
    const std::vector<Frame> frames{code(function), wait_frame(reason)};
    WaitSample wait;
    wait.sample = {clock.monotonic(), process, process.pid, "worker", frames, {}};
    wait.last_seen = last_seen;
    wait.waited_ns = waited_ns;
    wait.queued_ns = queued_ns;
    store.add_wait(wait);
    store.set_waits_seen(clock.monotonic());
  }
  [[nodiscard]] std::uint64_t waited(const Selection& selection, Measure measure = Measure::kWait,
                                     bool hides_idle = false) const {
    TestNamer namer;
    const Profile profile = build_profile(measured(store.snapshot(), measure, hides_idle), selection, namer);
    return profile.nodes[0].total_samples * static_cast<std::uint64_t>(profile.period_ns) /
           static_cast<std::uint64_t>(kNsPerMs);
  }
  [[nodiscard]] std::uint64_t waited(Measure measure = Measure::kWait, bool hides_idle = false) const {
    return waited(Selection{everything()}, measure, hides_idle);
  }
  [[nodiscard]] std::vector<std::string> stacks() const {
    TestNamer namer;
    return folded(build_profile(measured(store.snapshot(), Measure::kWait, false), Selection{everything()}, namer));
  }
};

TEST_CASE("A visit's time belongs to the stack that it found, and run queues to themselves", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kLock);
  host.pass(2);
  host.visit(WaitReason::kDisk, 1500 * kNsPerMs, MonotonicTime{host.clock.monotonic().ns - 2 * kSecond},
             500 * kNsPerMs);
  CHECK(host.waited() == 2000);
  // The names are those of TestNamer.
  const std::string disk = "f" + std::to_string(wait_frame(WaitReason::kDisk).offset / 16);
  CHECK(host.stacks() ==
        std::vector<std::string>{"all;worker (100);f1;" + disk + " 15000", "all;worker (100);" + disk + " 5000"});
}

TEST_CASE("Waits for disks that no visit has seen have their reason and no stack", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kLock);
  host.pass(2);
  const std::vector<Frame> lock{code(16), wait_frame(WaitReason::kLock)};
  WaitSample wait;
  wait.sample = {host.clock.monotonic(), kProcess, kProcess.pid, "worker", lock, {}};
  wait.last_seen = MonotonicTime{host.clock.monotonic().ns - 2 * kSecond};
  wait.waited_ns = 1500 * kNsPerMs;
  wait.disk_ns = 500 * kNsPerMs;
  host.store.add_wait(wait);
  host.store.set_waits_seen(host.clock.monotonic(), DiskAccount::kOfSome);
  QueryBudget budget;
  const auto usage =
      process_usage(measured(host.store.snapshot(), Measure::kWait, false), Selection{host.everything()}, budget);
  REQUIRE(usage);
  REQUIRE(usage->rows.size() == 1);
  const WaitSums& waits = usage->rows[0].waits_ns;
  CHECK(waits[static_cast<std::size_t>(WaitReason::kDisk)] == 500 * kNsPerMs);
  CHECK(waits[static_cast<std::size_t>(WaitReason::kLock)] == 1500 * kNsPerMs);
  CHECK(usage->disk_account == DiskAccount::kOfSome);
}

TEST_CASE("CPU time has no waits, and both together are their sum", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kLock);
  host.add({code(16)});
  host.pass(1);
  host.visit(WaitReason::kLock, kSecond);
  CHECK(host.profile().nodes[0].total_samples == 1);
  CHECK(host.waited() == 1000);
  CHECK(host.waited(Measure::kWall) == 1010);
}

TEST_CASE("A thread stays in its wait as long as it was seen there", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kLock);
  host.pass_minutes(90);
  host.store.set_waits_seen(host.clock.monotonic());
  CHECK(host.waited() == 90 * 60 * 1000);

  SECTION("and a window has its part of it") {
    const WallTime now = host.clock.wall();
    CHECK(host.waited(Selection{{{now.ns - 30 * kNsPerMinute}, {now.ns - 10 * kNsPerMinute}}}) == 20 * 60 * 1000);
  }
  SECTION("also when it is over") {
    host.pass(10);
    host.visit(WaitReason::kDisk, kSecond, MonotonicTime{host.clock.monotonic().ns - kSecond});
    CHECK(host.waited() == (90 * 60 + 10) * 1000);
    host.pass_minutes(3);
    CHECK(host.waited() == (90 * 60 + 10) * 1000);
  }
  SECTION("and when it has ended nothing is added") {
    host.store.end_wait(kProcess.pid, host.clock.monotonic());
    host.pass_minutes(3);
    host.store.set_waits_seen(host.clock.monotonic());
    CHECK(host.waited() == 90 * 60 * 1000);
    CHECK(host.store.stats().waiting_threads == 0);
  }
}

TEST_CASE("A thread that is found again in a known wait adds nothing, but its stack may be known better", "[store]") {
  WaitingHost host;
  WaitSample wait;
  const std::vector<Frame> reason{wait_frame(WaitReason::kLock)};
  wait.sample = {host.clock.monotonic(), kProcess, kProcess.pid, "worker", reason, Truncation::kRowsPending};
  host.store.add_wait(wait);
  host.pass(1);
  const std::vector<Frame> whole{code(32), wait_frame(WaitReason::kLock)};
  wait.sample = {host.clock.monotonic(), kProcess, kProcess.pid, "worker", whole, {}};
  wait.is_known = true;
  host.store.add_wait(wait);
  host.store.set_waits_seen(host.clock.monotonic());
  REQUIRE(host.stacks().size() == 1);
  CHECK(host.stacks()[0].find("f2;") == std::string::npos);
  wait.has_user_stack = true;
  host.store.add_wait(wait);
  host.store.set_waits_seen(host.clock.monotonic());
  CHECK(host.waited() == 1000);
  REQUIRE(host.stacks().size() == 1);
  CHECK(host.stacks()[0].find("f2;") != std::string::npos);
}

TEST_CASE("A stack that was read and walked long after its wait began replaces what was known", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kLock);
  host.pass(100);
  WaitSample again;
  const std::vector<Frame> part{code(32), wait_frame(WaitReason::kLock)};
  again.sample = {host.clock.monotonic(), kProcess, kProcess.pid, "worker", part, Truncation::kRowsPending};
  again.has_user_stack = true;
  again.is_known = true;
  host.store.add_wait(again);
  host.pass(1);
  const std::vector<Frame> whole{code(48), code(32), wait_frame(WaitReason::kLock)};
  again.sample.frames = whole;
  again.sample.truncation.reset();
  host.store.correct_wait(again.sample);
  host.store.set_waits_seen(host.clock.monotonic());
  CHECK(host.waited() == 101'000);
  REQUIRE(host.stacks().size() == 1);
  CHECK(host.stacks()[0].find("f3;f2;") != std::string::npos);
}

TEST_CASE("A stack that was walked late replaces that of the same visit only", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kLock);
  const std::vector<Frame> late{code(48), wait_frame(WaitReason::kLock)};
  StackSample walked{host.clock.monotonic(), kProcess, kProcess.pid, "worker", late, {}};
  host.store.correct_wait(walked);
  host.pass(1);
  host.store.set_waits_seen(host.clock.monotonic());
  REQUIRE(host.stacks().size() == 1);
  CHECK(host.stacks()[0].find("f3;") != std::string::npos);
  host.visit(WaitReason::kDisk, 0, host.clock.monotonic());
  host.store.correct_wait(walked);
  host.pass(1);
  host.store.set_waits_seen(host.clock.monotonic());
  CHECK(host.waited() == 2000);
  CHECK(host.stacks().size() == 2);
}

TEST_CASE("Threads that held locks are told with the threads that waited for them", "[store]") {
  WaitingHost host;
  constexpr ProcessId kOther{kProcess.pid + 1, kProcess.start_ticks};
  const auto waits_for = [&](std::uint32_t holder, std::int64_t waited_ns, std::int32_t tid, ProcessId process) {
    std::vector<Frame> frames{code(16), wait_frame(WaitReason::kLock)};
    if (holder != 0) frames.insert(frames.end() - 1, holder_frame(1, holder));
    WaitSample wait;
    wait.sample = {host.clock.monotonic(), process, tid, "waiter", frames, {}};
    wait.last_seen = host.clock.monotonic();
    wait.waited_ns = waited_ns;
    host.store.add_wait(wait);
  };
  const std::vector<Frame> running{code(16)};
  host.store.add({host.clock.monotonic(), kProcess, 700, "owner", running, {}});
  host.pass(1);
  waits_for(700, kSecond, 7, kProcess);
  waits_for(700, kSecond, 7, kProcess);
  waits_for(701, 3 * kSecond, 7, kProcess);
  waits_for(0, kSecond, 7, kProcess);
  waits_for(700, kSecond, 8, kOther);
  host.store.set_waits_seen(host.clock.monotonic());
  QueryBudget unlimited;
  const auto usage =
      thread_usage(measured(host.store.snapshot(), Measure::kWait, false), Selection{host.everything()}, unlimited);
  REQUIRE(usage);
  REQUIRE(usage->rows.size() == 2);
  CHECK(usage->rows[0].tid == 7);
  CHECK(usage->rows[0].waits_ns[static_cast<std::size_t>(WaitReason::kLock)] == 6 * kSecond);
  REQUIRE(usage->rows[0].holders.size() == 2);
  CHECK(usage->rows[0].holders[0].tid == 701);
  CHECK(usage->rows[0].holders[0].ns == 3 * kSecond);
  CHECK(usage->rows[0].holders[0].comm.empty());
  CHECK(usage->rows[0].holders[1].tid == 700);
  CHECK(usage->rows[0].holders[1].ns == 2 * kSecond);
  CHECK(usage->rows[0].holders[1].comm == "owner");
  // Another process's thread with that number is another thread.
  REQUIRE(usage->rows[1].holders.size() == 1);
  CHECK(usage->rows[1].holders[0].comm.empty());
}

TEST_CASE("Threads that wait for work can be left out", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kPoll);
  host.pass(1);
  host.visit(WaitReason::kPoll, kSecond);
  host.pass_minutes(5);
  host.visit(WaitReason::kLock, 2 * kSecond, host.clock.monotonic());
  CHECK(host.waited(Measure::kWait, false) == 303'000);
  CHECK(host.waited(Measure::kWait, true) == 2000);
  CHECK(host.waited(Measure::kWall, true) == 2000);
}

TEST_CASE("Waits are selected like samples, by process and by user", "[store]") {
  WaitingHost host;
  constexpr ProcessId kOther{200, 6000};
  for (const std::int64_t waited_ns : {std::int64_t{0}, kSecond}) {
    host.visit(WaitReason::kLock, waited_ns);
    host.visit(WaitReason::kDisk, 2 * waited_ns, {}, 0, kOther);
    host.pass(1);
  }
  Selection other{host.everything()};
  other.processes.push_back({kOther.pid});
  CHECK(host.waited(other) == 3000 - 0);
  TestNamer namer;
  const Snapshot nobodys = measured(seen_by(host.store.snapshot(), 1001), Measure::kWait, false);
  CHECK(build_profile(nobodys, Selection{host.everything()}, namer).nodes[0].total_samples == 0);
}

TEST_CASE("A timeline has long waits in every step", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kLock);
  host.pass_minutes(10);
  host.store.set_waits_seen(host.clock.monotonic());
  QueryBudget unlimited;
  const auto line = timeline(measured(host.store.snapshot(), Measure::kWait, false), Selection{host.everything()},
                             kNsPerMinute, 1, unlimited);
  REQUIRE(line);
  REQUIRE(line->processes.size() == 1);
  for (std::size_t minute = 0; minute < 10; ++minute) {
    INFO("minute " << minute);
    CHECK(line->steps[minute].kernel_ns == static_cast<std::uint64_t>(kNsPerMinute));
    CHECK(line->processes[0].steps[minute].kernel_ns == static_cast<std::uint64_t>(kNsPerMinute));
    CHECK(line->waits[minute][static_cast<std::size_t>(WaitReason::kLock)] == static_cast<std::uint64_t>(kNsPerMinute));
  }
}

/// Waits for a lock from noon on, for ten seconds; then for half of ten more in waits that nobody has seen; then for a
/// disk.
struct ShortWaits : WaitingHost {
  ShortWaits() {
    visit(WaitReason::kLock);
    pass(20);
    visit(WaitReason::kDisk, 5 * kSecond, MonotonicTime{clock.monotonic().ns - 10 * kSecond});
    pass(10);
    store.set_waits_seen(clock.monotonic());
  }
  [[nodiscard]] std::uint64_t waited_in(double from_s, double to_s, std::optional<SecondPart> part = {}) const {
    const auto at = [](double seconds) { return WallTime{kNoon.ns + static_cast<std::int64_t>(seconds * 1e9)}; };
    Selection selection{{at(from_s), at(to_s)}};
    selection.part = part;
    return waited(selection);
  }
};

TEST_CASE("A window within a minute has its part of each wait", "[store]") {
  ShortWaits host;
  const auto check = [&] {
    CHECK(host.waited_in(0, 30) == 25'000);
    CHECK(host.waited_in(2, 5.5) == 3500);
    CHECK(host.waited_in(10, 20) == 5000);
    CHECK(host.waited_in(12, 14) == 1000);
    CHECK(host.waited_in(9, 21) == 1000 + 5000 + 1000);
    CHECK(host.waited_in(1, 4, SecondPart{250 * kNsPerMs, 500 * kNsPerMs}) == 750);
    CHECK(host.waited_in(21, 24, SecondPart{0, 100 * kNsPerMs}) == 300);
  };
  check();
  SECTION("also when the minute is over") {
    host.store.end_wait(kProcess.pid, host.clock.monotonic());
    host.pass_minutes(5);
    check();
    CHECK(host.waited_in(30, 60) == 0);
    CHECK(host.waited() == 25'000);
  }
  SECTION("and a wait that a later minute's visit tells belongs to the time of the wait") {
    host.pass(60);
    host.visit(WaitReason::kLock, 30 * kSecond, MonotonicTime{host.clock.monotonic().ns - 40 * kSecond});
    host.store.end_wait(kProcess.pid, host.clock.monotonic());
    // For a disk until 12:00:50, then for three quarters of the time until 12:01:30.
    CHECK(host.waited_in(0, 60) == 15'000 + 30'000 + 7500);
    CHECK(host.waited_in(60, 90) == 22'500);
    host.pass_minutes(5);
    CHECK(host.waited_in(0, 60) == 15'000 + 30'000 + 7500);
    CHECK(host.waited_in(60, 120) == 22'500);
    CHECK(host.waited() == 75'000);
  }
}

TEST_CASE("A timeline of waits has steps of seconds, and both measures in each", "[store]") {
  ShortWaits host;
  host.add({code(16)});
  QueryBudget unlimited;
  const auto line = timeline(measured(host.store.snapshot(), Measure::kWall, false), Selection{host.everything()},
                             kSecond, 1, unlimited);
  REQUIRE(line);
  CHECK(line->step_ns == kSecond);
  REQUIRE(line->steps.size() >= 30);
  const auto of = [&](std::size_t second, WaitReason reason) {
    return line->waits[second][static_cast<std::size_t>(reason)];
  };
  CHECK(of(3, WaitReason::kLock) == static_cast<std::uint64_t>(kSecond));
  CHECK(of(13, WaitReason::kDisk) == static_cast<std::uint64_t>(kSecond / 2));
  CHECK(of(25, WaitReason::kDisk) == static_cast<std::uint64_t>(kSecond));
  CHECK(line->steps[30].user_ns == static_cast<std::uint64_t>(kPeriodNs));
}

TEST_CASE("A heat map of waits has each wait in all of its cells, and agrees with selections of them", "[store]") {
  ShortWaits host;
  QueryBudget unlimited;
  const Snapshot waits = measured(host.store.snapshot(), Measure::kWait, false);
  const auto map = heatmap(waits, Selection{host.everything()}, 7, unlimited);
  REQUIRE(map);
  REQUIRE(map->columns >= 30);
  const auto cell = [&](std::size_t second, std::size_t row) { return map->counts[second * 7 + row]; };
  CHECK(cell(4, 3) == kUnitsPerSecond / 7 + 1);
  CHECK(cell(15, 6) == kUnitsPerSecond / 14);
  CHECK(map->most == cell(4, 3));
  CHECK(map->total_samples == 25 * kUnitsPerSecond);
  std::uint64_t sum = 0;
  for (const std::uint32_t count : map->counts) sum += count;
  CHECK(sum >= 25 * kUnitsPerSecond - map->counts.size());
  CHECK(sum <= 25 * kUnitsPerSecond + map->counts.size());

  const auto hidden = heatmap(measured(seen_by(host.store.snapshot(), 1001), Measure::kWait, false),
                              Selection{host.everything()}, 7, unlimited);
  REQUIRE(hidden);
  CHECK(hidden->total_samples == 0);
}

TEST_CASE("A heat map leaves out threads that wait for work", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kPoll);
  host.pass(10);
  host.visit(WaitReason::kLock, 0, host.clock.monotonic());
  host.pass(1);
  host.store.set_waits_seen(host.clock.monotonic());
  QueryBudget unlimited;
  const auto total = [&](bool hides_idle) {
    return heatmap(measured(host.store.snapshot(), Measure::kWait, hides_idle), Selection{host.everything()}, 50,
                   unlimited)
        .value()
        .total_samples;
  };
  CHECK(total(false) == 11 * kUnitsPerSecond);
  CHECK(total(true) == kUnitsPerSecond);
}

TEST_CASE("Where there is no room for single waits, windows are of whole minutes and there is no heat map", "[store]") {
  WaitingHost host({.exact_budget_bytes = 0});
  host.visit(WaitReason::kLock);
  host.pass(20);
  host.visit(WaitReason::kDisk, 0, host.clock.monotonic());
  host.store.end_wait(kProcess.pid, host.clock.monotonic());
  CHECK(host.waited(Selection{{{kNoon.ns + 5 * kSecond}, {kNoon.ns + 6 * kSecond}}}) == 20'000);
  QueryBudget unlimited;
  CHECK(heatmap(measured(host.store.snapshot(), Measure::kWait, false), Selection{host.everything()}, 50, unlimited)
            .error()
            .code() == ENODATA);
}

TEST_CASE("Single waits of a busy machine take some ten bytes each", "[store]") {
  // A hundred threads, each visited every three seconds in another wait, as on a machine with a full share of visits.
  WaitingHost host;
  const std::size_t before = host.store.stats().exact_bytes;
  for (int second = 0; second < 15 * 60; ++second) {
    host.pass(1);
    for (std::int32_t tid = 1; tid <= 100; ++tid) {
      if ((tid + second) % 3 != 0) continue;
      const std::vector<Frame> frames{code(static_cast<std::uint64_t>(16 + (tid * 7 + second) % 30 * 16)),
                                      wait_frame(WaitReason::kLock)};
      WaitSample wait;
      wait.sample = {{host.clock.monotonic().ns - tid * 7 * kNsPerMs}, kProcess, tid, "worker", frames, {}};
      wait.last_seen = MonotonicTime{host.clock.monotonic().ns - 3 * kSecond + tid * 13 * kNsPerMs};
      wait.waited_ns = kSecond / 2 + tid * 3'100'000;
      wait.queued_ns = kSecond / 4;
      host.store.add_wait(wait);
    }
    host.store.set_waits_seen(host.clock.monotonic());
  }
  host.pass_minutes(2);
  const StoreStats stats = host.store.stats();
  REQUIRE(stats.exact_waits > 80'000);
  INFO(stats.exact_waits << " waits in " << stats.exact_bytes - before << " bytes");
  CHECK(stats.exact_bytes - before < 10 * stats.exact_waits + 200'000);
}

TEST_CASE("Each process's waits, and each group's, are told by reason", "[store]") {
  WaitingHost host;
  constexpr ProcessId kOther{200, 6000};
  for (const ProcessId& id : {kProcess, kOther}) {
    ProcessInfo info;
    info.id = id;
    info.comm = "server";
    info.unit = "server.service";
    host.store.update_process(info);
    host.visit(WaitReason::kLock, 0, {}, 0, id);
  }
  host.add({code(16)});
  host.pass(3);
  host.visit(WaitReason::kDisk, 2 * kSecond, MonotonicTime{host.clock.monotonic().ns - 3 * kSecond}, kSecond);
  host.visit(WaitReason::kLock, 3 * kSecond, MonotonicTime{host.clock.monotonic().ns - 3 * kSecond}, 0, kOther);
  const auto of = [](const WaitSums& waits, WaitReason reason) { return waits[static_cast<std::size_t>(reason)]; };
  QueryBudget unlimited;
  const Snapshot wall = measured(host.store.snapshot(), Measure::kWall, false);
  const auto processes = process_usage(wall, Selection{host.everything()}, unlimited);
  REQUIRE(processes);
  REQUIRE(processes->rows.size() == 2);
  CHECK(processes->rows[0].info.id == kProcess);
  CHECK(processes->rows[0].cpu_ns == 3 * kSecond + 10 * kNsPerMs);
  CHECK(of(processes->rows[0].waits_ns, WaitReason::kDisk) == 2 * kSecond);
  CHECK(of(processes->rows[0].waits_ns, WaitReason::kRunQueue) == kSecond);
  CHECK(of(processes->rows[0].waits_ns, WaitReason::kLock) == 0);
  CHECK(of(processes->rows[1].waits_ns, WaitReason::kLock) == 3 * kSecond);
  const auto units = group_usage(wall, Selection{host.everything()}, Group::kUnit, unlimited);
  REQUIRE(units);
  REQUIRE(units->rows.size() == 1);
  CHECK(of(units->rows[0].waits_ns, WaitReason::kLock) == 3 * kSecond);
  CHECK(of(units->rows[0].waits_ns, WaitReason::kRunQueue) == kSecond);
  const auto cpu = process_usage(host.store.snapshot(), Selection{host.everything()}, unlimited);
  REQUIRE(cpu);
  CHECK(cpu->rows[0].waits_ns == WaitSums{});
}

TEST_CASE("Each thread's waits are told by reason, CPU time apart", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kLock);
  host.add({code(16)});
  host.pass(3);
  host.visit(WaitReason::kDisk, 2 * kSecond, host.clock.monotonic(), kSecond);
  QueryBudget unlimited;
  const auto threads =
      thread_usage(measured(host.store.snapshot(), Measure::kWall, false), Selection{host.everything()}, unlimited);
  REQUIRE(threads);
  REQUIRE(threads->rows.size() == 1);
  const WaitSums& waits = threads->rows[0].waits_ns;
  const auto of = [&](WaitReason reason) { return waits[static_cast<std::size_t>(reason)]; };
  CHECK(of(WaitReason::kLock) == 3 * kSecond);
  CHECK(of(WaitReason::kDisk) == 2 * kSecond);
  CHECK(of(WaitReason::kRunQueue) == kSecond);
  CHECK(threads->rows[0].cpu_ns > 6 * kSecond);
  const auto cpu = thread_usage(host.store.snapshot(), Selection{host.everything()}, unlimited);
  REQUIRE(cpu);
  CHECK(cpu->rows[0].waits_ns == WaitSums{});
}

TEST_CASE("Less than a unit is not lost", "[store]") {
  WaitingHost host;
  host.visit(WaitReason::kLock);
  for (int i = 0; i < 1000; ++i) host.visit(WaitReason::kLock, kWaitUnitNs / 4, host.clock.monotonic());
  CHECK(host.waited() == 25);
}

TEST_CASE("Threads of an owner that is visited seldom stayed in their waits until they were", "[store]") {
  WaitingHost host;
  const std::vector<Frame> frames{code(16), wait_frame(WaitReason::kSleep)};
  for (const std::uint32_t owner : {7U, 8U}) {
    WaitSample wait;
    wait.sample = {host.clock.monotonic(), kProcess, static_cast<std::int32_t>(owner), "worker", frames, {}};
    wait.sample.owner = owner;
    host.store.add_wait(wait);
  }
  host.pass(1);
  const MonotonicTime late = host.clock.monotonic();
  host.pass(4);
  host.store.set_waits_seen(host.clock.monotonic(), DiskAccount::kOfNone, {{7, late}});
  CHECK(host.waited() == 1000 + 5000);
  host.store.end_wait(7, host.clock.monotonic());
  host.store.end_wait(8, host.clock.monotonic());
  CHECK(host.waited() == 1000 + 5000);
}

TEST_CASE("A day of sleeping threads stays within the store's budget and loses no time", "[store]") {
  constexpr int kThreads = 2000;
  WaitingHost host({.budget_bytes = 8U << 20});
  const std::vector<Frame> frames{code(16), wait_frame(WaitReason::kSleep)};
  for (int tid = 1; tid <= kThreads; ++tid) {
    WaitSample wait;
    wait.sample = {host.clock.monotonic(), kProcess, tid, "worker", frames, {}};
    host.store.add_wait(wait);
  }
  host.pass_minutes(24 * 60 - 1);
  host.store.set_waits_seen(host.clock.monotonic());
  CHECK(host.waited() == std::uint64_t{kThreads} * (24 * 60 - 1) * 60 * 1000);
  CHECK(host.store.stats().used_bytes < 4U << 20);
  CHECK(host.store.stats().slots_dropped_for_budget == 0);
}

TEST_CASE("Waits without room for their stacks are counted as lost or cut, and the store goes on", "[store]") {
  WaitingHost host({.budget_bytes = 1U << 20});
  std::uint64_t function = 16;
  for (int minute = 0; minute < 20; ++minute) {
    for (std::int32_t tid = 1; tid < 3000; ++tid) {
      const std::vector<Frame> frames{code(function), code(function + 16), wait_frame(WaitReason::kLock)};
      function += 32;
      WaitSample wait;
      wait.sample = {host.clock.monotonic(), kProcess, tid, "worker", frames, {}};
      wait.waited_ns = kSecond;
      host.store.add_wait(wait);
    }
    host.pass_minutes(1);
  }
  CHECK(host.store.stats().used_bytes <= host.store.stats().budget_bytes);
  TestNamer namer;
  const Snapshot snapshot = measured(host.store.snapshot(), Measure::kWait, false);
  const Profile profile = build_profile(snapshot, Selection{host.everything()}, namer);
  CHECK(profile.quality.truncated_total() + profile.quality.lost_total() > kUnitsPerSecond);
}

}  // namespace
}  // namespace flamed::store::test
