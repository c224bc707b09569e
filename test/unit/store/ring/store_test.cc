// SPDX-License-Identifier: Apache-2.0
#include "store/ring/store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "store/ring/snapshot_data.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {

TEST_CASE("every sample is in exactly one bucket") {
  TestStore t;
  t.add({code(16)});
  t.add({code(16)});
  t.add({code(16)}, kProcess, Truncation::kDepthLimit);
  t.store.add_lost(Loss::kRingFull, 5, t.clock.monotonic());
  Quality quality = t.store.stats().quality;
  CHECK(quality.whole == 2);
  CHECK(count_of(quality, Truncation::kDepthLimit) == 1);
  CHECK(count_of(quality, Loss::kRingFull) == 5);
  CHECK(quality.taken() == 8);
}

TEST_CASE("every addition makes a new revision, and a read does not") {
  TestStore t;
  std::uint64_t seen = t.store.revision();
  const auto is_another = [&] {
    const std::uint64_t before = std::exchange(seen, t.store.revision());
    return seen != before;
  };
  t.add({code(16)});
  CHECK(is_another());
  t.store.add_lost(Loss::kRingFull, 5, t.clock.monotonic());
  CHECK(is_another());
  t.store.add_gap({kNoon, {kNoon.ns + kNsPerSecond}});
  CHECK(is_another());
  t.store.update_process({kProcess, "worker", "", 0, kNoon, std::nullopt});
  CHECK(is_another());
  static_cast<void>(t.profile());
  CHECK_FALSE(is_another());
}

TEST_CASE("a minute is sealed a few seconds after its end, so that late samples still fit") {
  TestStore t;
  t.store.advance(t.clock.monotonic());
  t.pass(58);
  MonotonicTime late = t.clock.monotonic();
  t.pass(4);
  t.add({code(32)});
  t.add_at(late, {code(16)});
  CHECK(t.store.stats().slots == 2);
  t.pass(10);
  CHECK(folded(t.profile_of({kNoon, {kNoon.ns + kNsPerMinute}})) == std::vector<std::string>{"all;worker (100);f1 1"});
  CHECK(folded(t.profile_of({{kNoon.ns + kNsPerMinute}, {kNoon.ns + 2 * kNsPerMinute}})) ==
        std::vector<std::string>{"all;worker (100);f2 1"});
}

TEST_CASE("a sample whose minute is already sealed counts in the oldest open one") {
  TestStore t({kNsPerMinute * 60, 8U << 20, 0});
  MonotonicTime early = t.clock.monotonic();
  t.add({code(16)});
  t.pass(90);
  t.add_at(early, {code(32)});
  CHECK(t.store.stats().quality.whole == 2);
  CHECK(t.store.stats().quality.lost_total() == 0);
  CHECK(folded(t.profile_of({{kNoon.ns + kNsPerMinute}, {kNoon.ns + 2 * kNsPerMinute}})) ==
        std::vector<std::string>{"all;worker (100);f2 1"});
}

TEST_CASE("a sample from before the retained time is lost with a reason") {
  TestStore t;
  t.add({code(16)});
  t.add_at({t.clock.monotonic().ns - 10 * kNsPerMinute}, {code(32)});
  Quality quality = t.store.stats().quality;
  CHECK(quality.whole == 1);
  CHECK(count_of(quality, Loss::kTooOld) == 1);
  CHECK(count_of(t.profile().quality, Loss::kTooOld) == 1);
}

TEST_CASE("first samples may come in any order around the turn of a minute") {
  TestStore t;
  t.clock.advance_ns(59 * kNsPerSecond);
  Store store({}, t.clock, kPeriodNs);
  MonotonicTime created = t.clock.monotonic();
  std::vector<Frame> frames{code(16)};
  store.add({{created.ns + 2 * kNsPerSecond}, kProcess, 100, "worker", frames, {}});
  store.add({{created.ns + kNsPerMs}, kProcess, 100, "worker", frames, {}});
  CHECK(store.stats().quality.whole == 2);
  CHECK(store.stats().slots == 2);
}

TEST_CASE("the known time begins with sampling, not with sampling's first minute") {
  TestStore t;
  t.pass(20);
  t.clock.advance_ns(20 * kNsPerSecond);
  t.store.begin();
  const WallTime began = t.clock.wall();
  t.pass(10);
  // One CPU that is busy all the time, for ten seconds.
  for (int i = 0; i < 1000; ++i) t.add_at({t.clock.monotonic().ns - i * kPeriodNs}, {code(1)});
  CHECK(t.store.stats().oldest == began);
  CHECK(t.store.stats().exact_from == began);
  CHECK(retained_window(t.store.snapshot())->from == began);
  const Profile profile = t.profile();
  CHECK(profile.used.from == began);
  CHECK(profile.cpu_ns(profile.nodes.front().total_samples) == 10 * kNsPerSecond);
  CHECK(profile.used.to.ns - profile.used.from.ns == 10 * kNsPerSecond + 1);

  // After the minute its samples are only counted, and later it is no longer held.
  TestStore counted{{.retention_ns = 10 * kNsPerMinute, .exact_budget_bytes = 0}};
  counted.clock.advance_ns(40 * kNsPerSecond);
  counted.store.begin();
  counted.add({code(1)});
  counted.pass_minutes(2);
  CHECK(counted.profile_of({{0}, {kNoon.ns + kNsPerMinute}}).used.from.ns == kNoon.ns + 40 * kNsPerSecond);
  counted.pass_minutes(9);
  CHECK(retained_window(counted.store.snapshot())->from.ns == kNoon.ns + kNsPerMinute);
}

TEST_CASE("a sample from before the reported beginning moves the beginning back") {
  TestStore t;
  t.clock.advance_ns(40 * kNsPerSecond);
  t.store.begin();
  t.add_at({t.clock.monotonic().ns - kNsPerSecond}, {code(1)});
  const Profile profile = t.profile();
  CHECK(profile.nodes.front().total_samples == 1);
  CHECK(profile.used.from.ns == kNoon.ns + 39 * kNsPerSecond);
}

TEST_CASE("idle minutes are slots without entries") {
  TestStore t;
  t.store.advance(t.clock.monotonic());
  t.pass_minutes(10);
  CHECK(t.store.stats().slots == 11);
  CHECK(t.store.stats().histogram_entries == 0);
  CHECK(t.store.stats().oldest == kNoon);
}

TEST_CASE("slots older than the retention are dropped, with stacks, threads and processes that only they named") {
  TestStore t({10 * kNsPerMinute, 64U << 20});
  t.add({code(16), code(32), code(48)});
  t.pass_minutes(5);
  t.add({code(16), code(64)}, {200, 1});
  t.pass_minutes(8);
  t.store.advance(t.clock.monotonic());
  StoreStats stats = t.store.stats();
  CHECK(stats.slots_dropped_for_age > 0);
  CHECK(stats.slots_dropped_for_budget == 0);
  CHECK(stats.nodes == 3);
  CHECK(stats.frames == 2);
  CHECK(stats.threads == 1);
  CHECK(stats.processes == 1);
  CHECK(t.store.take_live_modules() == std::vector<ModuleId>{ModuleId{16}});
  CHECK_FALSE(t.store.take_live_modules().has_value());
}

TEST_CASE("live modules are reported only after something was reclaimed") {
  TestStore t;
  t.add({code(16)});
  t.pass_minutes(3);
  CHECK_FALSE(t.store.take_live_modules().has_value());
}

TEST_CASE("two days at one day's retention: memory stays flat, within budget, and ids are reused") {
  TestStore t({24 * 60 * kNsPerMinute, 32U << 20});
  std::size_t after_a_day = 0;
  std::size_t nodes_after_a_day = 0;
  std::size_t most = 0;
  for (std::uint64_t minute = 0; minute < 48 * 60; ++minute) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      // Half of the stacks come back every minute, half never: a service among short-lived programs.
      std::uint64_t unique = i % 2 == 0 ? i : 1'000'000 + minute * 64 + i;
      ProcessId process{static_cast<std::int32_t>(i % 2 == 0 ? 100 : 1000 + minute % 500), minute};
      if (i % 2 == 0) process.start_ticks = 1;
      t.add({code(16), code(32), code(unique * 16), code(unique * 16 + 1)}, process);
    }
    t.pass_minutes(1);
    most = std::max(most, t.store.stats().used_bytes);
    if (minute == 25 * 60) {
      after_a_day = t.store.stats().used_bytes;
      nodes_after_a_day = t.store.stats().nodes;
    }
  }
  StoreStats stats = t.store.stats();
  CHECK(most <= stats.budget_bytes);
  CHECK(stats.used_bytes <= after_a_day + after_a_day / 10);
  CHECK(stats.nodes <= nodes_after_a_day + nodes_after_a_day / 10);
  CHECK(stats.slots_dropped_for_budget == 0);
  CHECK(stats.slots <= 24 * 60 + 2);
  CHECK(stats.slots >= 24 * 60);
  CHECK(stats.processes <= 24 * 60 + 64);
  CHECK(stats.quality.whole == 48 * 60 * 40);
}

TEST_CASE("over budget the oldest slots are dropped first and the answer says so") {
  TestStore t({24 * 60 * kNsPerMinute, 2U << 20});
  std::uint64_t unique = 0;
  for (int minute = 0; minute < 60; ++minute) {
    for (int i = 0; i < 2000; ++i) t.add({code(16), code(16 * ++unique)});
    t.pass_minutes(1);
    CHECK(t.store.stats().used_bytes <= t.store.stats().budget_bytes);
  }
  StoreStats stats = t.store.stats();
  CHECK(stats.slots_dropped_for_budget > 0);
  CHECK(stats.slots > 3);
  CHECK(stats.quality.truncated_total() == 0);
  CHECK(stats.quality.lost_total() == 0);
  CHECK(stats.oldest > kNoon);
  CHECK(mentions(t.profile_of({kNoon, t.clock.wall()}).warnings, "memory budget of 2 MiB"));
  CHECK_FALSE(mentions(t.profile_of({{t.clock.wall().ns - 2 * kNsPerMinute}, t.clock.wall()}).warnings, "budget"));
}

TEST_CASE("a burst of stacks that never repeat stays within budget and every sample is accounted for") {
  TestStore t({24 * 60 * kNsPerMinute, 2U << 20});
  t.add({code(16), code(32)});
  t.pass_minutes(5);
  t.add({code(16), code(32)});
  constexpr std::uint64_t kBurst = 300'000;
  for (std::uint64_t i = 0; i < kBurst; ++i) {
    t.add({code(16), code(32), code(48 + i), code(7 * i)});
    if (i % 10'000 == 0) REQUIRE(t.store.stats().used_bytes <= t.store.stats().budget_bytes);
  }
  StoreStats stats = t.store.stats();
  CHECK(stats.used_bytes <= stats.budget_bytes);
  CHECK(stats.slots_dropped_for_budget > 0);
  CHECK(count_of(stats.quality, Truncation::kStoreFull) > kBurst / 2);
  CHECK(stats.quality.lost_total() == 0);
  CHECK(stats.quality.taken() == kBurst + 2);
  // Stacks without room are shown as not kept below their deepest known caller.
  Profile profile = t.profile(ProcessSelector{100, {}});
  CHECK(profile.quality.stored() == kBurst + 1);
  CHECK(count_of(profile.quality, Truncation::kStoreFull) == count_of(stats.quality, Truncation::kStoreFull));
  auto lines = folded(profile);
  CHECK(std::any_of(lines.begin(), lines.end(),
                    [](const std::string& line) { return line.find("worker (100);f1;f2;[truncated: no room") == 0; }));
  // It is over with the burst.
  t.pass_minutes(3);
  t.add({code(0x5000), code(0x6000)});
  CHECK(t.store.stats().quality.truncated == stats.quality.truncated);
}

TEST_CASE("a flood of threads is lost with a reason once threads have no room") {
  TestStore t({24 * 60 * kNsPerMinute, 1U << 20});
  for (std::int32_t pid = 1; pid < 60'000; ++pid) t.add({code(16)}, {pid, 1});
  StoreStats stats = t.store.stats();
  CHECK(stats.used_bytes <= stats.budget_bytes);
  CHECK(count_of(stats.quality, Loss::kStoreFull) > 0);
  CHECK(stats.quality.taken() == 59'999);
}

TEST_CASE("a change of period begins a new slot, so that each sample keeps its weight") {
  TestStore t;
  t.add({code(16)});
  t.pass(10);
  t.store.set_period_ns(4 * kPeriodNs, t.clock.monotonic());
  t.add({code(16)});
  CHECK(t.store.stats().slots == 2);
  Profile profile = t.profile();
  // The second one counts as four.
  CHECK(profile.nodes[0].total_samples == 5);
  CHECK(profile.cpu_ns(profile.nodes[0].total_samples) == 5 * kPeriodNs);
  CHECK(profile.quality.whole == 5);
  CHECK(profile.period_ns == kPeriodNs);
  REQUIRE(profile.periods.size() == 2);
  CHECK(profile.periods[0].period_ns == kPeriodNs);
  CHECK(profile.periods[1].period_ns == 4 * kPeriodNs);
  CHECK(profile.periods[0].share + profile.periods[1].share == Approx(1));
  CHECK(profile.mean_weight() > 1);
  CHECK(mentions(profile.warnings, "period changed"));
  auto usage = process_usage(t.store.snapshot(), t.everything());
  REQUIRE(usage.size() == 1);
  CHECK(usage[0].cpu_ns == 5 * kPeriodNs);
}

TEST_CASE("late samples from before a change of period keep their weight") {
  TestStore t;
  t.add({code(16)});
  t.pass(10);
  MonotonicTime before = t.clock.monotonic();
  t.pass(1);
  t.store.set_period_ns(4 * kPeriodNs, t.clock.monotonic());
  t.add_at(before, {code(16)});
  CHECK(t.profile().cpu_ns(t.profile().nodes[0].total_samples) == 2 * kPeriodNs);
}

TEST_CASE("a period holds from a given moment, which may be past") {
  TestStore t;
  const MonotonicTime start = t.clock.monotonic();
  t.add({code(16)});
  t.pass(3);
  t.store.set_period_ns(4 * kPeriodNs, {start.ns + kNsPerSecond});
  t.add_at({start.ns + kNsPerSecond / 2}, {code(16)});
  t.add_at({start.ns + kNsPerSecond}, {code(16)});
  t.add_at({start.ns + 2 * kNsPerSecond}, {code(16)});
  CHECK(t.profile().nodes[0].total_samples == 10);
  CHECK(t.profile().cpu_ns(t.profile().nodes[0].total_samples) == 10 * kPeriodNs);
}

TEST_CASE("periods may change often within a minute without losing anything") {
  TestStore t;
  for (std::int64_t i = 1; i <= 20; ++i) {
    t.store.set_period_ns(i * kNsPerMs, t.clock.monotonic());
    t.add({code(16)});
    t.pass(1);
  }
  CHECK(t.store.stats().quality.stored() == 20);
  CHECK(t.profile().cpu_ns(t.profile().nodes[0].total_samples) == 210 * kNsPerMs);
}

TEST_CASE("a step of the wall clock neither loses nor doubles a minute") {
  std::int64_t step = GENERATE(3600 * kNsPerSecond, -3600 * kNsPerSecond, 7 * kNsPerSecond, -7 * kNsPerSecond);
  TestStore t;
  for (int i = 0; i < 600; ++i) {
    if (i == 305) t.clock.step_wall_ns(step);
    t.store.advance(t.clock.monotonic());
    t.add({code(16)});
    t.clock.advance_ns(kNsPerSecond);
  }
  WallWindow all{{0}, {t.clock.wall().ns + 2 * 3600 * kNsPerSecond}};
  CHECK(t.profile_of(all).nodes[0].total_samples == 600);
  // Later samples are found under the new time at once.
  Profile recent = t.profile_of({{t.clock.wall().ns - kNsPerMinute}, t.clock.wall()});
  CHECK(recent.nodes[0].total_samples >= 60);
}

TEST_CASE("a snapshot does not change while the store adds, drops, sweeps and reuses") {
  TestStore t({5 * kNsPerMinute, 8U << 20});
  t.add({code(16), code(32), code(48)});
  t.store.update_process({kProcess, "before", "/bin/before", 1, {}, {}});
  Snapshot held = t.store.snapshot();
  WallWindow window = t.everything();
  TestNamer namer;
  auto before = folded(build_profile(held, {window}, namer));
  t.add({code(16), code(32), code(48)});
  t.store.update_process({kProcess, "after", "/bin/after", 1, {}, kNoon});
  for (std::uint64_t minute = 0; minute < 30; ++minute) {
    for (std::uint64_t i = 0; i < 500; ++i) t.add({code(minute * 100'000 + i * 16), code(i)}, {300, minute});
    t.pass_minutes(1);
  }
  CHECK(t.store.stats().slots_dropped_for_age > 20);
  CHECK_FALSE(knows(t.store.snapshot(), {100, {}}));
  CHECK(folded(build_profile(held, {window}, namer)) == before);
  CHECK(before == std::vector<std::string>{"all;before (100);f1;f2;f3 1"});
}

TEST_CASE("a snapshot outlives the store") {
  auto t = std::make_unique<TestStore>();
  t->add({code(16)});
  Snapshot held = t->store.snapshot();
  WallWindow window = t->everything();
  t.reset();
  TestNamer namer;
  CHECK(folded(build_profile(held, {window}, namer)) == std::vector<std::string>{"all;worker (100);f1 1"});
}

TEST_CASE("readers see consistent snapshots while the writer adds, drops and reuses") {
  TestStore t({3 * kNsPerMinute, 4U << 20});
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::atomic<int> profiles{0};
  // Every stack is one frame x below 16 and above x + 1. Every reader checks this.
  auto read = [&] {
    TestNamer namer;
    while (!done || profiles < 4) {
      Snapshot snapshot = t.store.snapshot();
      Profile profile = build_profile(snapshot, {{{0}, {kNoon.ns * 2}}}, namer);
      for (const ProfileNode& node : profile.nodes) {
        if (node.self_samples == 0) continue;
        const std::string& inner = profile.frames[node.frame].name;
        const std::string& outer = profile.frames[profile.nodes[node.parent].frame].name;
        if (std::stoull(inner.substr(1)) != std::stoull(outer.substr(1)) + 1) ++wrong;
      }
      if (profile.nodes[0].total_samples != profile.quality.stored()) ++wrong;
      ++profiles;
    }
  };
  std::thread first(read);
  std::thread second(read);
  std::uint64_t unique = 1;
  for (int minute = 0; minute < 40; ++minute) {
    for (int i = 0; i < 300; ++i) {
      ++unique;
      t.add({code(16), code(unique * 32), code(unique * 32 + 16)},
            {static_cast<std::int32_t>(unique % 7), unique / 900});
    }
    t.store.update_process({{minute, 1}, "p" + std::to_string(minute), "/bin/p", 0, {}, kNoon});
    t.pass_minutes(1);
  }
  done = true;
  first.join();
  second.join();
  CHECK(wrong == 0);
  CHECK(profiles >= 4);
  CHECK(t.store.stats().slots_dropped_for_age > 30);
}

TEST_CASE("a running process is known without samples, and dropped soon after its end") {
  TestStore t;
  ProcessInfo info{kProcess, "idle", "/bin/idle", 7, kNoon, {}};
  t.store.update_process(info);
  t.pass_minutes(10);
  CHECK(knows(t.store.snapshot(), {100, 5000}));
  CHECK_FALSE(knows(t.store.snapshot(), {100, 5001}));
  info.ended = t.clock.wall();
  t.store.update_process(info);
  CHECK(knows(t.store.snapshot(), {100, {}}));
  t.pass_minutes(5);
  CHECK_FALSE(knows(t.store.snapshot(), {100, {}}));
  CHECK(t.store.stats().processes == 0);
}

TEST_CASE("an ended process is known for as long as a slot names it") {
  TestStore t({10 * kNsPerMinute, 8U << 20});
  t.store.update_process({kProcess, "batch", "/bin/batch", 0, kNoon, kNoon});
  t.add({code(16)});
  t.pass_minutes(9);
  CHECK(knows(t.store.snapshot(), {100, {}}));
  t.pass_minutes(8);
  CHECK_FALSE(knows(t.store.snapshot(), {100, {}}));
}

TEST_CASE("a process's description is read back whole") {
  TestStore t;
  ProcessInfo info{kProcess, "worker", "/bin/worker", 7, kNoon, {}};
  info.parent_pid = 12;
  info.parent_start_ticks = 34;
  info.uid = 0;
  info.command_line = "worker --fast";
  info.cgroup = "/system.slice/worker.service";
  info.unit = "worker.service";
  info.container = "box";
  t.store.update_process(info);
  t.add({code(16)});
  const std::vector<ProcessUsage> usage = process_usage(t.store.snapshot(), t.everything());
  REQUIRE(usage.size() == 1);
  CHECK(usage[0].info.parent_pid == 12);
  CHECK(usage[0].info.parent_start_ticks == 34);
  CHECK(usage[0].info.uid == 0U);
  CHECK(usage[0].info.command_line == "worker --fast");
  CHECK(usage[0].info.cgroup == "/system.slice/worker.service");
  CHECK(usage[0].info.unit == "worker.service");
  CHECK(usage[0].info.container == "box");
}

TEST_CASE("long command lines are cut once they take a sixteenth of the budget") {
  TestStore t({60 * kNsPerMinute, 8U << 20, 0});
  for (std::int32_t pid = 1; pid <= 400; ++pid) {
    ProcessInfo info{{pid, 1}, "cc1", "/usr/lib/gcc/cc1", 0, kNoon, {}};
    info.command_line = "cc1 " + std::to_string(pid) + std::string(4000, 'x');
    t.store.update_process(info);
    t.add({code(16)}, info.id);
  }
  std::size_t whole = 0;
  for (const ProcessUsage& usage : process_usage(t.store.snapshot(), t.everything())) {
    if (usage.info.command_line.size() > 4000) {
      ++whole;
    } else {
      CHECK(usage.info.command_line.size() == 128 + 3);
    }
    CHECK(usage.info.command_line.starts_with("cc1 " + std::to_string(usage.info.id.pid) + "x"));
  }
  CHECK(whole > 100);
  CHECK(whole < 140);
}

TEST_CASE("the end of a process leaves the rest of its description") {
  TestStore t;
  CHECK_FALSE(t.store.end_process(kProcess, kNoon));
  t.add({code(16)});
  CHECK_FALSE(t.store.end_process(kProcess, kNoon));  // only its samples are known
  ProcessInfo info{kProcess, "worker", "/bin/worker", 7, kNoon, std::nullopt};
  info.command_line = "worker -v";
  t.store.update_process(info);
  const std::uint64_t before = t.store.revision();
  CHECK(t.store.end_process(kProcess, WallTime{kNoon.ns + kNsPerSecond}));
  CHECK(t.store.revision() != before);
  const std::vector<ProcessUsage> usage = process_usage(t.store.snapshot(), t.everything());
  REQUIRE(usage.size() == 1);
  CHECK(usage[0].info.ended == WallTime{kNoon.ns + kNsPerSecond});
  CHECK(usage[0].info.command_line == "worker -v");
  CHECK(usage[0].info.executable == "/bin/worker");
}

TEST_CASE("ancestors of a sampled process are known for as long as it is") {
  TestStore t({10 * kNsPerMinute, 8U << 20});
  const ProcessId make{10, 1};
  const ProcessId shell{11, 2};
  const ProcessId compiler{12, 3};
  ProcessInfo info{make, "make", "/bin/make", 0, kNoon, kNoon};
  t.store.update_process(info);
  info = {shell, "sh", "/bin/sh", 0, kNoon, kNoon};
  info.parent_pid = make.pid;
  info.parent_start_ticks = make.start_ticks;
  t.store.update_process(info);
  info = {compiler, "cc1", "/bin/cc1", 0, kNoon, kNoon};
  info.parent_pid = shell.pid;
  info.parent_start_ticks = shell.start_ticks;
  t.store.update_process(info);
  t.add({code(16)}, compiler);
  t.pass_minutes(8);
  CHECK(knows(t.store.snapshot(), {make.pid, make.start_ticks}));
  CHECK(knows(t.store.snapshot(), {shell.pid, shell.start_ticks}));
  t.pass_minutes(12);
  CHECK(t.store.stats().processes == 0);
}

TEST_CASE("processes that come and go without samples leave nothing behind") {
  TestStore t;
  t.store.advance(t.clock.monotonic());
  std::size_t before = t.store.stats().used_bytes;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    auto pid = static_cast<std::int32_t>(i % 4000);
    ProcessInfo info{{pid, i}, "c" + std::to_string(i), "/tmp/c" + std::to_string(i), 0, {}, kNoon};
    info.command_line = "c --run=" + std::to_string(i);
    info.cgroup = "/run-" + std::to_string(i) + ".scope";
    info.unit = "run-" + std::to_string(i) + ".scope";
    t.store.update_process(info);
    if (i % 100 == 99) t.pass_minutes(1);
  }
  t.pass_minutes(5);
  CHECK(t.store.stats().processes == 0);
  CHECK(t.store.stats().used_bytes < before + 205 * 1024);  // 205 empty slots
}

TEST_CASE("short of memory, single samples are dropped first, then the oldest minutes, and answers say so") {
  TestStore t;
  for (std::uint64_t minute = 0; minute < 20; ++minute) {
    for (std::uint64_t i = 0; i < 3000; ++i) t.add({code(16 * (minute * 3000 + i))});
    t.pass_minutes(1);
  }
  const StoreStats full = t.store.stats();
  REQUIRE(full.exact_bytes > 0);

  t.store.give_back(1);
  t.pass(1);
  const StoreStats less = t.store.stats();
  CHECK(less.exact_samples == full.exact_samples - 3000);
  CHECK(less.slots == full.slots);
  CHECK(less.given_back_bytes == full.used_bytes - less.used_bytes);
  CHECK(less.slots_dropped_for_memory == 0);

  const std::size_t bytes = full.exact_bytes + (full.used_bytes - full.exact_bytes) / 2;
  t.store.give_back(bytes);
  t.pass(1);
  const StoreStats least = t.store.stats();
  CHECK(least.slots_dropped_for_memory > 0);
  CHECK(least.used_bytes <= less.used_bytes - bytes);
  CHECK(mentions(t.profile().warnings, "short of memory"));
  CHECK(least.quality.taken() == 60'000);
}

TEST_CASE("a finished store has sealed all its slots, and answers as before") {
  TestStore t;
  t.add({code(16)});
  t.pass_minutes(1);
  t.add({code(32)});
  const std::vector<std::string> before = folded(t.profile());
  t.store.finish(t.clock.monotonic());
  const Snapshot snapshot = t.store.snapshot();
  CHECK(snapshot.data().open.empty());
  REQUIRE(snapshot.data().sealed->size() == 2);
  CHECK(snapshot.data().sealed->back().slot->bounds.end.ns == t.clock.monotonic().ns + 1);
  CHECK(folded(t.profile()) == before);
}

TEST_CASE("who waits for a sealed slot is told which is the newest, or that there is none") {
  constexpr std::chrono::seconds kLong{60};
  TestStore t;
  std::stop_source stop;
  t.add({code(16)});
  t.pass_minutes(2);
  t.pass(10);
  const std::optional<std::uint32_t> first = t.store.await_sealed(0, stop.get_token(), kLong);
  REQUIRE(first);
  std::optional<std::uint32_t> next;
  std::thread waiter([&] { next = t.store.await_sealed(*first, stop.get_token(), kLong); });
  t.pass_minutes(1);
  waiter.join();
  CHECK(next == *first + 1);
  CHECK_FALSE(t.store.await_sealed(*next, stop.get_token(), std::chrono::milliseconds(1)));
  stop.request_stop();
  CHECK_FALSE(t.store.await_sealed(*next, stop.get_token(), kLong));
}

}  // namespace flamed::store::test
