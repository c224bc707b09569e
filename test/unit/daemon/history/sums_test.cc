// SPDX-License-Identifier: Apache-2.0
//
// What a daemon answers from sums of ten minutes: the same as from minutes, but in whole stretches.
#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "api/render/render_processes.h"
#include "archive/codec/stretch.h"
#include "archive/codec/sum.h"
#include "archive/files/sqlite.h"
#include "archive/reading/check.h"
#include "archive/reading/past.h"
#include "store/query/query.h"
#include "store/query/timeline.h"
#include "store/query/usage.h"
#include "store/ring/snapshot_data.h"
#include "test/catch.h"
#include "test/unit/daemon/history/history_answers.h"
#include "test/unit/daemon/history/history_fixture.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

using archive::kStretchNs;
using flamed::test::TemporaryDirectory;
using store::Detail;
using store::Selection;
using store::Snapshot;
using store::WallWindow;
using store::test::code;
using store::test::kNoon;
using store::test::mentions;
using store::test::TestStore;
using test::add;
using test::end;
using test::kAlice;
using test::kBob;
using test::kCountsAlone;
using test::sample;
using test::TestHistory;

constexpr std::int64_t kHourNs = 60 * kNsPerMinute;
constexpr Detail kProcesses{.only_processes = true, .step_ns = kStretchNs};

/// So many hours before noon, and the hour after: from sums, if there are any.
WallWindow around_noon(std::int64_t hours = 6) { return {{kNoon.ns - hours * kHourNs}, {kNoon.ns + kHourNs}}; }

store::UsageTable<store::ProcessUsage> usage_of(const Snapshot& snapshot, const WallWindow& window) {
  store::QueryBudget budget;
  return store::process_usage(snapshot, Selection{window}, budget).value();
}

/// Rows and totals, in terms of what people see.
std::string text_of(const store::UsageTable<store::ProcessUsage>& usage) {
  std::string text = std::to_string(usage.total_samples) + " of " + std::to_string(usage.quality.taken()) + ", " +
                     std::to_string(usage.quality.truncated_total()) + " truncated\n";
  for (const store::ProcessUsage& row : usage.rows) {
    text += std::to_string(row.info.id.pid) + "@" + std::to_string(row.info.id.start_ticks) + " " + row.info.comm +
            " " + row.info.executable + " " + row.info.unit + " " + row.info.command_line + " " +
            std::to_string(row.info.uid.value_or(0)) + ": " + std::to_string(row.samples) + "\n";
  }
  return text;
}

std::string text_of(const store::Timeline& line) {
  std::string text = std::to_string(line.start.ns) + " by " + std::to_string(line.step_ns);
  for (const store::TimelineStep& step : line.steps) {
    text += "; " + std::to_string(step.user_samples) + " " + std::to_string(step.kernel_samples);
  }
  for (const auto& process : line.processes) {
    text += "\n" + std::to_string(process.info.id.pid);
    for (const store::TimelineStep& step : process.steps) {
      text += "; " + std::to_string(step.user_samples) + " " + std::to_string(step.kernel_samples);
    }
  }
  return text;
}

void change(const std::string& path, const char* sql) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const archive::Connection connection(raw);
  REQUIRE(archive::run(raw, sql).ok());
}

/// A later daemon, which has sampled nothing yet.
struct Later {
  Later(const TestStore& before, const std::string& folder) : past(folder, {.boot_id = "this boot"}) {
    test.clock.advance_ns(before.clock.wall().ns + 2 * kHourNs - test.clock.wall().ns);
    test.store.begin();
    test.pass_minutes(1);
  }
  Snapshot with(const WallWindow& window, const Detail& detail) {
    return past.with(test.store.snapshot(), {&window, 1}, detail);
  }

  TestStore test;
  archive::Past past;
};

}  // namespace

TEST_CASE("processes and timelines of a long window are the same from sums as from minutes, for each viewer") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  {
    TestHistory on_disk(before, folder.path("history"));
    sample(before, 33);
    if (GENERATE(false, true)) {
      on_disk.history.write();  // and is killed: the last minutes have no sum
    } else {
      end(before, on_disk);
    }
  }
  Later after(before, folder.path("history"));
  const WallWindow window = around_noon();
  const Snapshot minutes = after.with(window, {});
  const Snapshot sums = after.with(window, kProcesses);
  CHECK(sums.data().sealed->size() < minutes.data().sealed->size() - 20);
  for (const std::optional<std::uint32_t> viewer :
       {std::optional<std::uint32_t>(), std::optional(kAlice), std::optional(kBob), std::optional<std::uint32_t>(7)}) {
    const auto seen = [&](const Snapshot& all) { return viewer ? store::seen_by(all, *viewer) : all; };
    CAPTURE(viewer.value_or(0));
    CHECK(text_of(usage_of(seen(sums), window)) == text_of(usage_of(seen(minutes), window)));
    for (const store::Side side : {store::Side::kBoth, store::Side::kUser, store::Side::kKernel}) {
      store::QueryBudget budget;
      const Selection selection{.window = window, .side = side};
      CHECK(text_of(store::timeline(seen(sums), selection, kStretchNs, 5, budget).value()) ==
            text_of(store::timeline(seen(minutes), selection, kStretchNs, 5, budget).value()));
    }
  }
}

TEST_CASE("minutes and sums of one window stay in memory side by side, also if there is no room for all minutes") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 33);
  end(before, on_disk);
  Later after(before, folder.path("history"));
  const WallWindow window = around_noon();
  const std::size_t all = after.with(window, {}).data().sealed->size();
  const std::size_t budget = after.past.bytes();
  archive::Past small(folder.path("history"), {.boot_id = "this boot", .budget_bytes = budget});
  const auto with = [&](const Detail& detail) { return small.with(after.test.store.snapshot(), {&window, 1}, detail); };
  const bool sums_first = GENERATE(false, true);
  if (sums_first) static_cast<void>(with(kProcesses));
  const Snapshot minutes = with({});
  CHECK(minutes.data().sealed->size() < all);
  CHECK(minutes.data().sealed->size() > 5);
  CHECK(mentions(minutes.data().warnings, "are left out"));
  const Snapshot sums = with(kProcesses);
  CHECK(sums.data().warnings.empty());
  CHECK(small.bytes() <= budget);

  std::filesystem::remove_all(folder.path("history"));
  for (int round = 0; round < 2; ++round) {
    CHECK(text_of(usage_of(with({}), window)) == text_of(usage_of(minutes, window)));
    CHECK(with({}).data().warnings == minutes.data().warnings);
    CHECK(text_of(usage_of(with(kProcesses), window)) == text_of(usage_of(sums, window)));
    CHECK(with(kProcesses).data().warnings.empty());
  }
  CHECK(small.problems().empty());
}

TEST_CASE("an answer from sums says its resolution, rounds its window to it, and its steps") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 30);
  end(before, on_disk);
  Later after(before, folder.path("history"));
  WallWindow window = around_noon();
  window.to.ns = kNoon.ns + 15 * kNsPerMinute;
  const auto usage = usage_of(after.with(window, kProcesses), window);
  CHECK(usage.resolution_ns == kStretchNs);
  CHECK(usage.used.to.ns == kNoon.ns + 2 * kStretchNs);
  CHECK(usage.total_samples == 20U * 3);
  CHECK(usage_of(after.with(window, {}), window).resolution_ns == kNsPerMinute);
  store::QueryBudget budget;
  const auto line =
      store::timeline(after.with(window, kProcesses), Selection{window}, 7 * kNsPerMinute, 0, budget).value();
  CHECK(line.step_ns == kStretchNs);
  CHECK(mentions(line.warnings, "the step is 600 seconds instead of the 420 asked for"));
  // Short windows, fine steps, and answers about threads have their minutes.
  const WallWindow hour{kNoon, {kNoon.ns + 15 * kNsPerMinute}};
  CHECK(usage_of(after.with(hour, kProcesses), hour).resolution_ns == kNsPerMinute);
  const Detail fine{.only_processes = true, .step_ns = kNsPerMinute};
  CHECK(usage_of(after.with(window, fine), window).resolution_ns == kNsPerMinute);
}

TEST_CASE("minutes that memory and a sum have count once") {
  const TemporaryDirectory folder;
  TestStore test({.retention_ns = 5 * kNsPerMinute, .exact_budget_bytes = 0});
  TestHistory on_disk(test, folder.path("history"));
  for (int minute = 0; minute < 22; ++minute) {
    sample(test, 1);
    on_disk.history.write();
  }
  const WallWindow window{{kNoon.ns - 6 * kHourNs}, test.clock.wall()};
  const Snapshot sums = on_disk.history.past().with(test.store.snapshot(), {&window, 1}, kProcesses);
  CHECK(usage_of(sums, window).total_samples == 22U * 3);
  CHECK(sums.data().sealed->front().slot->resolution_ns == kStretchNs);
}

TEST_CASE("sums that are damaged, or not there, cost nothing: minutes answer") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  {
    TestHistory on_disk(before, folder.path("history"));
    sample(before, 25);
    end(before, on_disk);
  }
  const WallWindow window = around_noon();
  const std::string expected = text_of(usage_of(before.store.snapshot(), window));
  const char* const damage =
      GENERATE("UPDATE sum SET pairs = zeroblob(length(pairs)) WHERE id = 2",
               "UPDATE sum SET additions = (SELECT additions FROM sum WHERE id = 1) WHERE id = 2",
               "UPDATE sum SET first = first + 1 WHERE id = 2",
               "UPDATE sum SET wall_end_ns = wall_end_ns + 60000000000 WHERE id = 1",
               "UPDATE sum SET last = last + 1 WHERE id = 1", "DELETE FROM sum WHERE id = 2",
               "DELETE FROM sum WHERE id = 1", "DROP TABLE sum");
  change(folder.path("history/history-00000001.db"), damage);
  CAPTURE(damage);
  Later after(before, folder.path("history"));
  CHECK(text_of(usage_of(after.with(window, kProcesses), window)) == expected);
  // Later sums have nothing new, so that the second one may be missing; all need the first one's dictionary.
  const std::string text = damage;
  const bool is_found = text.starts_with("UPDATE") || text.ends_with("id = 1");
  CHECK(archive::check_history(folder.path("history"))->problems.empty() != is_found);
}

TEST_CASE("sums before a damaged one are read, and minutes from it on") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  {
    TestHistory on_disk(before, folder.path("history"));
    sample(before, 45);
    end(before, on_disk);
  }
  change(folder.path("history/history-00000001.db"), "UPDATE sum SET pairs = zeroblob(length(pairs)) WHERE id = 4");
  Later after(before, folder.path("history"));
  for (int query = 1; query <= 2; ++query) {
    const Snapshot snapshot = after.with(around_noon(), kProcesses);
    const auto sums =
        std::count_if(snapshot.data().sealed->begin(), snapshot.data().sealed->end(),
                      [](const store::SealedSlot& sealed) { return sealed.slot->resolution_ns == kStretchNs; });
    CHECK(sums == 3);
    CHECK(text_of(usage_of(snapshot, around_noon())) == text_of(usage_of(before.store.snapshot(), around_noon())));
  }
}

TEST_CASE("a database without sums is written on, with sums") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory(before, folder.path("history")).history.write();
  sample(before, 3);
  {
    TestHistory on_disk(before, folder.path("history"));
    end(before, on_disk);
  }
  const std::string file = folder.path("history/history-00000001.db");
  change(file, "DROP TABLE sum");
  TestStore next(kCountsAlone);
  next.clock.advance_ns(before.clock.wall().ns + kNsPerMinute - next.clock.wall().ns);
  next.store.begin();
  TestHistory on_disk(next, folder.path("history"));
  sample(next, 12);
  end(next, on_disk);
  Later after(next, folder.path("history"));
  const WallWindow window = around_noon();
  CHECK(usage_of(after.with(window, kProcesses), window).total_samples == 15U * 3);
  CHECK(archive::check_history(folder.path("history"))->problems.empty());
}

TEST_CASE("short-lived processes are told apart in up to two days, or when they are asked for, and else by program") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  for (std::int32_t pid = 1000; pid < 1012; ++pid) {
    const ProcessId id{pid, static_cast<std::uint64_t>(pid)};
    before.store.update_process(test::info_of(id, "/usr/bin/cc1"));
    add(before, id, pid, pid % 3 == 0 ? kBob : kAlice, {code(0x10)});
    before.store.end_process(id, {before.clock.wall().ns + kNsPerSecond});
    sample(before, 1);
    if (pid != 1005) continue;
    on_disk.history.write();
    on_disk.history.end_session();
  }
  end(before, on_disk);
  Later after(before, folder.path("history"));
  const auto rows = [&](std::int64_t hours, const Detail& detail, std::optional<std::uint32_t> viewer = {}) {
    const WallWindow window = around_noon(hours);
    const Snapshot all = after.with(window, detail);
    return usage_of(viewer ? store::seen_by(all, *viewer) : all, window);
  };
  const auto each = rows(40, kProcesses);
  CHECK(each.rows.size() == 2 + 12);
  CHECK(each.total_samples == 12U * 4);
  const auto together = rows(80, kProcesses);
  CHECK(together.rows.size() == 2 + 2);  // of two users
  CHECK(together.total_samples == 12U * 4);
  CHECK(mentions(together.warnings, "Short-lived processes are shown together"));
  for (const store::ProcessUsage& row : together.rows) {
    if (!archive::is_several(row.info.id)) continue;
    CHECK(row.info.executable == "/usr/bin/cc1");
    CHECK(row.samples == (row.info.uid == kBob ? 4 : 8));
  }
  CHECK(rows(80, kProcesses, kBob).rows.size() == 2);
  CHECK(rows(80, kProcesses, kBob).total_samples == 12U * 2 + 4);
  const Detail one{.only_processes = true, .each_process = true, .step_ns = kStretchNs};
  CHECK(text_of(rows(80, one)) == text_of(each));
  // Without the memory for each of them they are together.
  archive::Past small(folder.path("history"), {.boot_id = "this boot", .budget_bytes = 1});
  const WallWindow window = around_noon(40);
  CHECK(mentions(usage_of(small.with(after.test.store.snapshot(), {&window, 1}, kProcesses), window).warnings,
                 "Short-lived"));
}

}  // namespace flamed::daemon
