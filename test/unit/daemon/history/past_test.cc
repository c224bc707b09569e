// SPDX-License-Identifier: Apache-2.0
//
// What the daemon answers after a restart, from minutes that an earlier one has written.
#include "archive/reading/past.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "archive/files/sqlite.h"
#include "archive/reading/check.h"
#include "daemon/history/history_namer.h"
#include "store/model/wait_reason.h"
#include "store/query/query.h"
#include "store/query/timed_samples.h"
#include "test/catch.h"
#include "test/unit/daemon/history/history_answers.h"
#include "test/unit/daemon/history/history_fixture.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

using flamed::test::TemporaryDirectory;
using store::Selection;
using store::Snapshot;
using store::WallWindow;
using store::test::code;
using store::test::kNoon;
using store::test::mentions;
using store::test::TestNamer;
using store::test::TestStore;
using test::add;
using test::answers;
using test::end;
using test::joined;
using test::kAlice;
using test::kBob;
using test::kCountsAlone;
using test::kDynamic;
using test::kShell;
using test::sample;
using test::sample_once;
using test::TestHistory;

/// A later run of the daemon, which has sampled for two minutes.
struct Later {
  Later(const TestStore& before, std::string folder, std::int64_t pause_ns, std::string boot = "this boot")
      : on_disk((start(test, before, pause_ns), test), std::move(folder), std::move(boot)) {
    sample(test, 2);
  }
  static void start(TestStore& test, const TestStore& before, std::int64_t pause_ns) {
    test.clock.advance_ns(before.clock.wall().ns + pause_ns - test.clock.wall().ns);
    test.store.begin();
  }
  Snapshot with(const WallWindow& window) { return on_disk.history.past().with(test.store.snapshot(), {&window, 1}); }

  TestStore test{kCountsAlone};
  TestHistory on_disk;
  TestNamer recent_namer;
  HistoryNamer namer{recent_namer, &on_disk.history.past()};
};

std::uint64_t samples_in(const Snapshot& snapshot, const WallWindow& window, store::FrameNamer& namer) {
  return store::build_profile(snapshot, Selection{window}, namer).nodes.front().total_samples;
}

}  // namespace

TEST_CASE("the same question before and after a restart has the same answer, byte for byte") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 10);
  end(before, on_disk);
  Later after(before, folder.path("history"), 90 * kNsPerSecond);
  const WallWindow window{{kNoon.ns + 2 * kNsPerMinute}, {kNoon.ns + 8 * kNsPerMinute}};
  TestNamer namer;
  for (const auto& narrow : {Selection{window}, Selection{.window = window, .processes = {{kShell.pid}}},
                             Selection{.window = window, .tids = {202}}, Selection{.window = window, .uids = {kBob}},
                             Selection{.window = window, .side = store::Side::kKernel}}) {
    const std::string expected = answers(before.store.snapshot(), narrow, namer);
    CHECK(answers(after.with(window), narrow, after.namer) == expected);
    CHECK(answers(store::seen_by(after.with(window), kAlice), narrow, after.namer) ==
          answers(store::seen_by(before.store.snapshot(), kAlice), narrow, namer));
  }
}

TEST_CASE("what was known of a process at the end is known of its first minute after a restart, too") {
  const TemporaryDirectory folder;
  const bool is_killed = GENERATE(false, true);
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  // The later run doesn't meet it.
  const ProcessId ends{300, 7000};
  store::ProcessInfo info = test::info_of(ends, "/bin/shell");
  before.store.update_process(info);
  for (int minute = 0; minute < 25; ++minute) {
    sample_once(before, minute);
    if (minute <= 2) add(before, ends, 300, kAlice, {code(0x10)});
    if (minute == 2) {
      info.executable = "/bin/executed";
      info.ended = before.clock.wall();
      before.store.update_process(info);
    }
    before.pass_minutes(1);
    on_disk.history.write();
  }
  if (!is_killed) end(before, on_disk);
  CAPTURE(is_killed);
  Later after(before, folder.path("history"), 90 * kNsPerSecond);
  TestNamer namer;
  const WallWindow first{kNoon, {kNoon.ns + kNsPerMinute}};
  CHECK(answers(after.with(first), Selection{first}, after.namer) ==
        answers(before.store.snapshot(), Selection{first}, namer));
  const WallWindow ten_minutes{kNoon, {kNoon.ns + 10 * kNsPerMinute}};
  const Snapshot sums =
      after.on_disk.history.past().with(after.test.store.snapshot(), {&ten_minutes, 1}, {.step_ns = 10 * kNsPerMinute});
  store::QueryBudget budget;
  const auto usage = store::process_usage(sums, Selection{ten_minutes}, budget).value();
  const auto row = std::find_if(usage.rows.begin(), usage.rows.end(),
                                [](const store::ProcessUsage& process) { return process.info.id.pid == 300; });
  REQUIRE(row != usage.rows.end());
  REQUIRE(row->info.ended.has_value());
  CHECK(row->info.ended->ns == info.ended->ns);
}

TEST_CASE("a process that a later run knows as a parent alone is what it was when it was sampled") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  const ProcessId parent{300, 7000};
  before.store.update_process(test::info_of(parent, "/bin/parent"));
  add(before, parent, 300, kAlice, {code(0x10)});
  sample(before, 2);
  end(before, on_disk);
  Later after(before, folder.path("history"), 90 * kNsPerSecond);
  store::ProcessInfo bare;
  bare.id = parent;
  bare.comm = "name";
  bare.started = test::info_of(parent, "").started;
  store::ProcessInfo child = test::info_of({400, 8000}, "/bin/child");
  child.parent_pid = parent.pid;
  child.parent_start_ticks = parent.start_ticks;
  after.test.store.update_process(bare);
  after.test.store.update_process(child);
  add(after.test, child.id, 400, kAlice, {code(0x10)});
  const WallWindow first{kNoon, {kNoon.ns + kNsPerMinute}};
  TestNamer namer;
  const Selection narrow{.window = first, .processes = {{parent.pid}}};
  CHECK(answers(after.with(first), narrow, after.namer) == answers(before.store.snapshot(), narrow, namer));
  CHECK(samples_in(store::seen_by(after.with(first), kAlice), first, after.namer) ==
        samples_in(store::seen_by(before.store.snapshot(), kAlice), first, namer));
}

TEST_CASE("a process that a later run has sampled is whose it says, also if that is nobody's") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 2);
  end(before, on_disk);
  Later after(before, folder.path("history"), 90 * kNsPerSecond);
  const WallWindow first{kNoon, {kNoon.ns + kNsPerMinute}};
  CHECK(samples_in(store::seen_by(after.with(first), kAlice), first, after.namer) != 0);
  add(after.test, kShell, 100, store::kNoUser, {code(0x10)});
  CHECK(samples_in(store::seen_by(after.with(first), kAlice), first, after.namer) == 0);
}

TEST_CASE("names that came with a later minute are those of an earlier one, too") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  on_disk.may_name = false;
  sample(before, 3);
  before.pass(10);
  on_disk.history.write();
  on_disk.may_name = true;
  sample(before, 5);
  end(before, on_disk);
  Later after(before, folder.path("history"), 90 * kNsPerSecond);
  TestNamer namer;
  for (const int minute : {1, 0, 6}) {
    CAPTURE(minute);
    const WallWindow window{{kNoon.ns + minute * kNsPerMinute}, {kNoon.ns + (minute + 1) * kNsPerMinute}};
    CHECK(answers(after.with(window), Selection{window}, after.namer) ==
          answers(before.store.snapshot(), Selection{window}, namer));
  }
}

TEST_CASE("a part of a minute has the same answer before and after an orderly end, byte for byte") {
  const TemporaryDirectory folder;
  const std::string boot = GENERATE(std::string("this boot"), std::string("earlier boot"));
  TestStore before;
  TestHistory on_disk(before, folder.path("history"), boot);
  for (int i = 0; i < 300; ++i) {
    sample_once(before, i);
    before.clock.advance_ns(kNsPerSecond + i % 7 * 10 * kNsPerMs);
    before.store.advance(before.clock.monotonic());
    if (i % 20 == 0) on_disk.history.write();
  }
  end(before, on_disk);
  const WallTime ended = before.clock.wall();
  Later after(before, folder.path("history"), 90 * kNsPerSecond);
  TestNamer namer;
  for (const std::int64_t seconds : {1, 10, 59, 100}) {
    const WallWindow window{{ended.ns - seconds * kNsPerSecond}, {ended.ns - kNsPerSecond / 2}};
    CAPTURE(seconds, boot);
    Snapshot with = after.with(window);
    const auto answer = [&](const Snapshot& snapshot, store::FrameNamer& names) {
      // Start times of another boot's processes are told apart.
      const Selection selection{.window = window, .tids = {202}};
      if (boot == "this boot") return answers(snapshot, Selection{window}, names);
      return joined(store::test::folded(store::build_profile(snapshot, selection, names)));
    };
    CHECK(answer(with, after.namer) == answer(before.store.snapshot(), namer));
    const store::Profile profile = store::build_profile(with, Selection{window}, after.namer);
    CHECK(profile.resolution_ns == 1);
    CHECK(profile.nodes.front().total_samples < static_cast<std::uint64_t>(3 * seconds + 3));
    store::QueryBudget budget;
    const auto times = [&](const Snapshot& snapshot, store::FrameNamer& names) {
      std::vector<std::int64_t> found;
      const auto samples = store::timed_samples(snapshot, Selection{window}, {}, names, budget).value();
      for (const store::TimedSample& one : samples.samples) found.push_back(one.time.ns);
      return found;
    };
    CHECK(times(with, after.namer) == times(before.store.snapshot(), namer));
  }
}

TEST_CASE("single samples that are damaged cost the answer its resolution alone") {
  const TemporaryDirectory folder;
  TestStore before;
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 3);
  end(before, on_disk);
  const std::string file = folder.path("history/history-00000001.db");
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const archive::Connection connection(raw);
  REQUIRE(archive::run(raw, "UPDATE samples SET block = zeroblob(length(block))").ok());
  Later after(before, folder.path("history"), kNsPerMinute);
  const WallWindow window{{kNoon.ns + 10 * kNsPerSecond}, {kNoon.ns + 20 * kNsPerSecond}};
  const store::Profile profile = store::build_profile(after.with(window), Selection{window}, after.namer);
  CHECK(profile.resolution_ns == kNsPerMinute);
  CHECK(profile.nodes.front().total_samples == 3);
  CHECK_FALSE(archive::check_history(folder.path("history"))->problems.empty());
}

TEST_CASE("after a kill the minute is answered as far as it was written, with its names") {
  const TemporaryDirectory folder;
  TestStore before;
  {
    TestHistory on_disk(before, folder.path("history"));
    sample(before, 2);
    on_disk.history.write();
    add(before, kShell, 100, kAlice, {code(0x10), code(0x7770)});
    before.pass(30);
    on_disk.history.write();
    on_disk.history.write_so_far();
    add(before, kShell, 100, kAlice, {code(0x10), code(0x8880)});
    before.pass(10);
  }
  const WallTime killed = before.clock.wall();
  Later after(before, folder.path("history"), 20 * kNsPerSecond);
  const WallWindow all{kNoon, after.test.clock.wall()};
  const store::Profile profile = store::build_profile(after.with(all), Selection{all}, after.namer);
  CHECK(profile.nodes.front().total_samples == 2 * 3 + 1 + 2 * 3);
  CHECK(joined(store::test::folded(profile)).find("f1;f1911 1") != std::string::npos);
  REQUIRE_FALSE(profile.missing.empty());
  CHECK(profile.missing.back().from.ns == killed.ns - 10 * kNsPerSecond);
}

TEST_CASE("a minute that was written so far, and then anew in another session, counts once") {
  const TemporaryDirectory folder;
  TestStore before({.retention_ns = 3 * kNsPerMinute, .exact_budget_bytes = 0});
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 1);
  on_disk.history.write();
  add(before, kShell, 100, kAlice, {code(0x10)});
  before.pass(30);
  on_disk.history.write_so_far();
  // The daemon believes that its file is gone, and opens it anew.
  for (const char* suffix : {"", "-wal", "-shm"}) {
    const std::string name = folder.path("history/history-0000000");
    if (std::filesystem::exists(name + "1.db" + suffix)) {
      std::filesystem::rename(name + "1.db" + suffix, name + "0.db" + suffix);
    }
  }
  const WallWindow all{kNoon, {kNoon.ns + 60 * kNsPerMinute}};
  TestNamer recent_namer;
  HistoryNamer namer(recent_namer, &on_disk.history.past());
  std::uint64_t expected = 3 + 1;
  for (int minute = 0; minute < 8; ++minute) {
    // Looks at the disk between the two.
    on_disk.history.past().look();
    add(before, kShell, 100, kAlice, {code(0x10)});
    ++expected;
    before.pass_minutes(1);
    on_disk.history.write();
    CHECK(samples_in(on_disk.history.past().with(before.store.snapshot(), {&all, 1}), all, namer) == expected);
  }
}

TEST_CASE("a clock that is a year ahead for a while and then set back costs no minute, and deletes nothing") {
  constexpr std::int64_t kYearNs = 365 * 24 * 60 * kNsPerMinute;
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 3);
  on_disk.history.write();
  before.clock.step_wall_ns(kYearNs);
  sample(before, 3);
  on_disk.history.write();
  before.clock.step_wall_ns(-kYearNs);
  sample(before, 3);
  end(before, on_disk);
  CHECK(on_disk.history.state().archive.files_unlinked == 0);
  CHECK(on_disk.history.state().missed_minutes == 0);
  Later after(before, folder.path("history"), kNsPerMinute);
  for (const std::int64_t ahead_ns : {std::int64_t{0}, kYearNs}) {
    const WallWindow window{{kNoon.ns + ahead_ns}, {kNoon.ns + ahead_ns + 9 * kNsPerMinute}};
    CHECK(samples_in(after.with(window), window, after.namer) == (ahead_ns == 0 ? 6U * 3 : 3U * 3));
  }
}

TEST_CASE("a window over memory and disk alike has the samples of both, and the time without flamed as a gap") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 3);
  before.pass(20);
  end(before, on_disk);
  const WallTime ended = before.clock.wall();
  Later after(before, folder.path("history"), 10 * kNsPerSecond);
  const WallWindow all{kNoon, after.test.clock.wall()};
  const Snapshot both = after.with(all);
  const store::Profile profile = store::build_profile(both, Selection{all}, after.namer);
  CHECK(profile.nodes.front().total_samples == 3 * 3 + 2 * 3);
  CHECK(profile.resolution_ns == kNsPerMinute);
  const auto is_restart = [](const store::Gap& gap) { return gap.reason == store::GapReason::kNotRunning; };
  const auto gap = std::find_if(profile.missing.begin(), profile.missing.end(), is_restart);
  REQUIRE(gap != profile.missing.end());
  CHECK(gap->from == ended);
  CHECK(gap->to.ns == ended.ns + 10 * kNsPerSecond);
  CHECK(mentions(profile.warnings, "flamed did not run (10.0 s)"));
  // The process is one, whoever has seen it.
  store::QueryBudget budget;
  CHECK(store::process_usage(both, Selection{all}, budget)->rows.size() == 2);
}

TEST_CASE("sums of minutes on disk hold for a process that is first sampled again after they were made") {
  constexpr ProcessId kIdle{300, 7000};
  const auto sample_idle = [&](TestStore& test) { add(test, kIdle, 300, kAlice, {code(0x40)}); };
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  constexpr int kMinutes = 12;  // runs of four have sums
  for (int minute = 0; minute < kMinutes; ++minute) {
    sample_idle(before);
    sample(before, 1);
  }
  end(before, on_disk);
  Later after(before, folder.path("history"), kNsPerMinute);
  for (std::uint64_t again = 0; again < 3; ++again) {
    const WallWindow all{kNoon, after.test.clock.wall()};
    const Snapshot both = after.with(all);
    store::QueryBudget budget;
    const auto usage = store::process_usage(both, Selection{all}, budget).value();
    CHECK(usage.rows.size() == 3);
    for (const store::ProcessUsage& row : usage.rows) {
      if (row.info.id == kIdle) CHECK(row.samples == kMinutes + again);
    }
    CHECK(samples_in(both, all, after.namer) == (kMinutes + 2) * 3 + kMinutes + again);
    sample_idle(after.test);
    after.test.pass_minutes(1);
  }
}

TEST_CASE("an answer about waiting time says which minutes have none") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 3);
  end(before, on_disk);
  Later after(before, folder.path("history"), kNsPerMinute);
  const auto warnings = [&](const WallWindow& window) {
    const Snapshot waits = store::measured(after.with(window), store::Measure::kWait, /*hides_idle=*/true);
    return store::build_profile(waits, Selection{window}, after.namer).warnings;
  };
  const WallTime now = after.test.clock.wall();
  CHECK(mentions(warnings({kNoon, now}), "Waiting time is not kept on disk: that of minutes up to 2"));
  CHECK_FALSE(mentions(warnings({{now.ns - kNsPerMinute}, now}), "Waiting time"));
}

TEST_CASE("a query of memory alone does not read the disk") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 3);
  end(before, on_disk);
  Later after(before, folder.path("history"), kNsPerMinute);
  const Snapshot recent = after.test.store.snapshot();
  const WallWindow window{{after.test.clock.wall().ns - kNsPerMinute}, after.test.clock.wall()};
  CHECK(&after.on_disk.history.past().with(recent, {&window, 1}).data() == &recent.data());
  CHECK(after.on_disk.history.past().bytes() == 0);
}

TEST_CASE("minutes that memory has dropped are read from disk, once each") {
  const TemporaryDirectory folder;
  TestStore test({.retention_ns = 3 * kNsPerMinute, .exact_budget_bytes = 0});
  TestHistory on_disk(test, folder.path("history"));
  for (int minute = 0; minute < 8; ++minute) {
    sample(test, 1);
    on_disk.history.write();
  }
  const WallWindow all{kNoon, test.clock.wall()};
  TestNamer recent_namer;
  HistoryNamer namer(recent_namer, &on_disk.history.past());
  CHECK(samples_in(on_disk.history.past().with(test.store.snapshot(), {&all, 1}), all, namer) == 8 * 3);
}

// Why a thread waits, and who holds its lock, is no frame of the archive, and no frame of the archive is such a reason.
static_assert(!archive::is_past(store::wait_frame(store::WaitReason::kRunQueue)));
static_assert(!archive::is_past(store::wait_frame(store::WaitReason::kOther)));
static_assert(!archive::is_past(store::holder_frame(1, 1)));
static_assert(!store::wait_reason_in({kKernelModule, 0}) && !store::wait_reason_in({kKernelModule, 1}));
static_assert(!store::wait_reason_in({kKernelModule, archive::kPastKernelFrames - 1}));

TEST_CASE("what is no longer in the kernel is called as it was, and what stays there is asked for") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  on_disk.may_name = false;
  on_disk.symbolizer.at_hand = {code(0x10)};
  const Frame program{kKernelModule, test::kFirstBpfProgram + 0x10}, stays{kKernelModule, 0xffffffff81000010};
  add(before, kShell, 100, kAlice, {code(0x10), stays, program});
  before.pass_minutes(1);
  end(before, on_disk);
  Later after(before, folder.path("history"), kNsPerMinute);
  const WallWindow earlier{kNoon, {kNoon.ns + kNsPerMinute}};
  TestNamer namer;
  const auto lines = [&](const Snapshot& snapshot, store::FrameNamer& names) {
    return joined(store::test::folded(store::build_profile(snapshot, Selection{earlier}, names)));
  };
  const std::size_t asked = after.recent_namer.asked.size();
  const std::string now = lines(after.with(earlier), after.namer);
  const std::string then = lines(before.store.snapshot(), namer);
  CHECK(now.substr(now.find(";f1;")) == then.substr(then.find(";f1;")));
  const std::vector<Frame> asked_now(after.recent_namer.asked.begin() + static_cast<std::ptrdiff_t>(asked),
                                     after.recent_namer.asked.end());
  CHECK(std::find(asked_now.begin(), asked_now.end(), stays) != asked_now.end());
  CHECK(std::find(asked_now.begin(), asked_now.end(), program) == asked_now.end());
}

TEST_CASE("the kernel's account of the machine is that of the minutes, in part of one in proportion, and memory's") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 10);
  end(before, on_disk);
  Later after(before, folder.path("history"), 5 * kNsPerMinute);
  const auto kept = [&](std::int64_t from_s, std::int64_t to_s) {
    const WallWindow window{{kNoon.ns + from_s * kNsPerSecond}, {kNoon.ns + to_s * kNsPerSecond}};
    return store::kept_cpu(after.with(window), window);
  };
  const auto is_empty = [](const WallWindow& window) { return window.to <= window.from; };
  const auto of_minutes = kept(2 * 60, 8 * 60), of_parts = kept(2 * 60 + 15, 8 * 60 + 30);
  CHECK(of_minutes.ns == 6 * 60 * kNsPerSecond);
  CHECK(is_empty(of_minutes.rest));
  CHECK(of_parts.ns == (6 * 60 + 15) * kNsPerSecond);
  CHECK(is_empty(of_parts.rest));
  // Between the runs nothing was sampled, and nothing counts.
  const auto of_both = kept(8 * 60, 16 * 60);
  CHECK(of_both.ns.value_or(0) / kNsPerMs == 2 * 60 * 1000);
  CHECK(of_both.rest.from.ns == kNoon.ns + 15 * kNsPerMinute);
  CHECK(of_both.rest.to.ns == kNoon.ns + 16 * kNsPerMinute);
  const auto of_memory = kept(15 * 60, 16 * 60);
  CHECK(of_memory.ns == 0);
  CHECK(of_memory.rest.from.ns == kNoon.ns + 15 * kNsPerMinute);
}

TEST_CASE("the first minute has its account from the moment on when flamed was started") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  before.clock.advance_ns(25 * kNsPerSecond);
  before.store.begin();
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 3);
  end(before, on_disk);
  Later after(before, folder.path("history"), 5 * kNsPerMinute);
  const WallWindow window{{kNoon.ns + 25 * kNsPerSecond}, {kNoon.ns + 2 * kNsPerMinute}};
  CHECK(store::kept_cpu(after.with(window), window).ns.value_or(0) / kNsPerMs == 95'000);
}

TEST_CASE("after a reboot the same numbers are other processes, and names are those of then") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"), "earlier boot");
  sample(before, 3);
  end(before, on_disk);
  Later after(before, folder.path("history"), 5 * kNsPerMinute);
  const WallWindow all{kNoon, after.test.clock.wall()};
  const Snapshot both = after.with(all);
  store::QueryBudget budget;
  const auto usage = store::process_usage(both, Selection{all}, budget);
  CHECK(usage->rows.size() == 4);
  const WallWindow earlier{kNoon, {kNoon.ns + 3 * kNsPerMinute}};
  const std::size_t asked = after.recent_namer.asked.size();
  const store::Profile profile = store::build_profile(both, Selection{earlier}, after.namer);
  CHECK(after.recent_namer.asked.size() == asked);  // the kernel's functions were elsewhere
  const auto lines = store::test::folded(profile);
  CHECK(std::any_of(lines.begin(), lines.end(),
                    [](const std::string& line) { return line.find("f1;f2;f") != std::string::npos; }));
}

TEST_CASE("users that the system hands out anew see nothing from before the boot") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  const std::string boot = GENERATE(std::string("this boot"), std::string("earlier boot"));
  TestHistory on_disk(before, folder.path("history"), boot);
  add(before, {300, 7000}, 300, kDynamic, {code(0x10)});
  add(before, {400, 8000}, 400, kAlice, {code(0x10)});
  before.pass_minutes(1);
  end(before, on_disk);
  Later after(before, folder.path("history"), kNsPerMinute);
  const WallWindow earlier{kNoon, {kNoon.ns + kNsPerMinute}};
  const Snapshot both = after.with(earlier);
  CHECK(samples_in(both, earlier, after.namer) == 2);
  CHECK(samples_in(store::seen_by(both, kAlice), earlier, after.namer) == 1);
  CHECK(samples_in(store::seen_by(both, kBob), earlier, after.namer) == 0);
  CHECK(samples_in(store::seen_by(both, kDynamic), earlier, after.namer) == (boot == "this boot" ? 1 : 0));
}

TEST_CASE("a hidden process's stacks are hidden from its user after a restart, too") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  add(before, kShell, 100, kAlice, {code(0x10)}, {}, true);
  before.pass_minutes(1);
  end(before, on_disk);
  Later after(before, folder.path("history"), kNsPerMinute);
  const WallWindow earlier{kNoon, {kNoon.ns + kNsPerMinute}};
  const store::Profile seen =
      store::build_profile(store::seen_by(after.with(earlier), kAlice), Selection{earlier}, after.namer);
  CHECK(seen.nodes.front().total_samples == 1);
  CHECK(joined(store::test::folded(seen)).find("f1") == std::string::npos);
  const store::Profile all = store::build_profile(after.with(earlier), Selection{earlier}, after.namer);
  CHECK(joined(store::test::folded(all)).find("f1") != std::string::npos);
}

TEST_CASE("what was never named is shown by its place") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  on_disk.may_name = false;
  sample(before, 2);
  end(before, on_disk);
  Later after(before, folder.path("history"), kNsPerMinute);
  const WallWindow earlier{kNoon, {kNoon.ns + 2 * kNsPerMinute}};
  const store::Profile profile = store::build_profile(after.with(earlier), Selection{earlier}, after.namer);
  CHECK(joined(store::test::folded(profile)).find("[unknown] (program+0x10)") != std::string::npos);
}

TEST_CASE("a better name that came with a later minute replaces the first one") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  on_disk.symbolizer.why_unknown = "no debug file";
  sample(before, 1);
  before.pass(10);
  on_disk.history.write();
  on_disk.symbolizer.why_unknown.clear();
  sample(before, 1);
  end(before, on_disk);
  Later after(before, folder.path("history"), kNsPerMinute);
  const auto stacks = [&](int minutes) {
    const WallWindow window{kNoon, {kNoon.ns + minutes * kNsPerMinute}};
    const Snapshot snapshot = after.with(window);
    return joined(store::test::folded(store::build_profile(snapshot, Selection{window}, after.namer)));
  };
  for (const int minutes : {1, 2}) {
    CHECK(stacks(minutes).find("[unknown] (lib)") == std::string::npos);
    CHECK(stacks(minutes).find("f1;f16") != std::string::npos);
  }
}

TEST_CASE("of an index that was read before, what was written since is known, too") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 3);
  on_disk.history.write();
  auto index = archive::read_index(folder.path("history"));
  index.wait();
  sample(before, 2);
  end(before, on_disk);
  archive::Past past(folder.path("history"), {.boot_id = "this boot"}, std::move(index));
  past.look();
  TestStore later(kCountsAlone);
  later.clock.advance_ns(before.clock.wall().ns + kNsPerMinute - later.clock.wall().ns);
  later.store.begin();
  later.pass_minutes(1);
  const WallWindow window{kNoon, before.clock.wall()};
  TestNamer recent_namer;
  HistoryNamer namer(recent_namer, &past);
  CHECK(samples_in(past.with(later.store.snapshot(), {&window, 1}), window, namer) == 5U * 3);
  CHECK(past.problems().empty());
}

TEST_CASE("a query does not wait for an index that does not come") {
  const TemporaryDirectory folder;
  std::promise<archive::MinuteIndex> never;
  archive::Past past(folder.path("history"), {.boot_id = "this boot"}, never.get_future());
  TestStore later(kCountsAlone);
  later.pass_minutes(1);
  const WallWindow window{{kNoon.ns - 60 * kNsPerMinute}, later.clock.wall()};
  const Snapshot answered = past.with(later.store.snapshot(), {&window, 1});
  CHECK(mentions(answered.data().warnings, "does not answer"));
}

TEST_CASE("more than the budget is left out, oldest first, and the answer says so") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 10);
  end(before, on_disk);
  Later after(before, folder.path("history"), kNsPerMinute);
  archive::Past past(folder.path("history"), {.boot_id = "this boot", .budget_bytes = 1});
  const WallWindow earlier{kNoon, {kNoon.ns + 10 * kNsPerMinute}};
  HistoryNamer namer(after.recent_namer, &past);
  const Snapshot some = past.with(after.test.store.snapshot(), {&earlier, 1});
  const store::Profile profile = store::build_profile(some, Selection{earlier}, namer);
  CHECK(profile.nodes.front().total_samples == 3);
  CHECK(mentions(profile.warnings, "are left out: reading so much of the history takes too much memory"));
  CHECK_FALSE(mentions(profile.warnings, "retained time"));
  const WallWindow from_before{{kNoon.ns - kNsPerMinute}, earlier.to};
  const Snapshot fewer = past.with(after.test.store.snapshot(), {&from_before, 1});
  CHECK(mentions(store::build_profile(fewer, Selection{from_before}, namer).warnings,
                 "partly outside of the retained time, which is 2026-01-01T12:00:00Z to "));

  // The same question again has the same answer, from what was read for the first one.
  std::filesystem::remove_all(folder.path("history"));
  const Snapshot again = past.with(after.test.store.snapshot(), {&earlier, 1});
  CHECK(again.data().warnings == some.data().warnings);
  CHECK(store::build_profile(again, Selection{earlier}, namer).nodes.front().total_samples == 3);
}

TEST_CASE("a damaged database costs its own minutes, and the answer says so") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  {
    TestHistory on_disk(before, folder.path("history"));
    sample(before, 3);
    end(before, on_disk);
  }
  Later after(before, folder.path("history"), 7 * 60 * kNsPerMinute);
  const WallWindow all{kNoon, after.test.clock.wall()};
  SECTION("a block") {
    sqlite3* raw = nullptr;
    REQUIRE(sqlite3_open_v2(folder.path("history/history-00000001.db").c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) ==
            SQLITE_OK);
    const archive::Connection connection(raw);
    REQUIRE(archive::run(raw, "UPDATE pairs SET block = zeroblob(length(block)) WHERE minute = 2").ok());
    const store::Profile profile = store::build_profile(after.with(all), Selection{all}, after.namer);
    CHECK(profile.nodes.front().total_samples == 2 * 3 + 2 * 3);
    CHECK(mentions(profile.warnings, "1 minutes of the history on disk can't be read"));
  }
  SECTION("all of it") {
    std::ofstream(folder.path("history/history-00000001.db"), std::ios::trunc) << "no database";
    const store::Profile profile = store::build_profile(after.with(all), Selection{all}, after.namer);
    CHECK(profile.nodes.front().total_samples == 2 * 3);
  }
}

TEST_CASE("a check reads every minute, and names what it can't read") {
  const TemporaryDirectory folder;
  const std::string path = folder.path("history");
  CHECK_FALSE(archive::check_history(path).ok());
  TestStore test(kCountsAlone);
  TestHistory on_disk(test, path);
  sample(test, 3);
  end(test, on_disk);
  const Result<archive::Checked> whole = archive::check_history(path);
  REQUIRE(whole.ok());
  CHECK(whole->files == 1);
  CHECK(whole->minutes == on_disk.history.state().archive.minutes);
  CHECK(whole->problems.empty());

  const std::string file = path + "/history-00000001.db";
  const std::string table = GENERATE(std::string("pairs"), std::string("additions"), std::string("names"));
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const archive::Connection connection(raw);
  REQUIRE(archive::run(raw, ("UPDATE " + table + " SET block = zeroblob(9) WHERE minute = 1").c_str()).ok());
  const Result<archive::Checked> damaged = archive::check_history(path);
  REQUIRE(damaged.ok());
  REQUIRE_FALSE(damaged->problems.empty());
  CHECK(damaged->problems.front().find(file + ": minute 1: ") == 0);
}

TEST_CASE("what could not be read is known, until it is read or gone") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 3);
  end(before, on_disk);
  Later after(before, folder.path("history"), 90 * kNsPerSecond);
  const archive::Past& past = after.on_disk.history.past();
  const WallWindow all{kNoon, after.test.clock.wall()};
  CHECK(past.problems().empty());

  // As on a disk that fails.
  std::filesystem::rename(folder.path("history"), folder.path("elsewhere"));
  std::ofstream(folder.path("history")) << "not a folder";
  static_cast<void>(after.with(all));
  REQUIRE(past.problems().size() == 1);
  CHECK(past.problems().front() == "cannot read " + folder.path("history") + ": Not a directory");
  std::filesystem::remove(folder.path("history"));
  static_cast<void>(after.with(all));
  CHECK(past.problems().empty());  // as before the first minute is written

  std::filesystem::rename(folder.path("elsewhere"), folder.path("history"));
  const std::string file = folder.path("history/history-00000001.db");
  const auto change = [&](const char* sql) {
    sqlite3* raw = nullptr;
    REQUIRE(sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
    const archive::Connection connection(raw);
    REQUIRE(archive::run(raw, sql).ok());
  };
  change("CREATE TABLE kept AS SELECT * FROM pairs; UPDATE pairs SET block = x'0100' WHERE minute = 2");
  static_cast<void>(after.with(all));
  REQUIRE(past.problems().size() == 1);
  CHECK(past.problems().front().find("1 minutes could not be read: ") == 0);
  change("UPDATE pairs SET block = (SELECT block FROM kept WHERE minute = 2) WHERE minute = 2");
  static_cast<void>(after.with(all));
  CHECK(past.problems().empty());
}

}  // namespace flamed::daemon
