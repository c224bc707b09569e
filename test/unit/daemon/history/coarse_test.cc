// SPDX-License-Identifier: Apache-2.0
//
// Old minutes as stretches of ten: what is answered from them, and that nothing is lost while they are made.
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/stack_places.h"
#include "archive/codec/stretch.h"
#include "archive/files/period_names.h"
#include "archive/files/sqlite.h"
#include "archive/reading/check.h"
#include "archive/reading/coarsening.h"
#include "archive/reading/excerpt.h"
#include "archive/reading/past.h"
#include "base/handle.h"
#include "daemon/file_sources.h"
#include "daemon/history/history_namer.h"
#include "store/query/query.h"
#include "store/query/usage.h"
#include "test/catch.h"
#include "test/unit/daemon/history/history_answers.h"
#include "test/unit/daemon/history/history_fixture.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

using archive::kStretchNs;
using archive::Period;
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
using test::end;
using test::kAlice;
using test::kBob;
using test::kCountsAlone;
using test::kServer;
using test::sample;
using test::TestHistory;

/// Minutes are old as soon as another file follows.
constexpr std::int64_t kAtOnce = 0;
/// Minutes stay beside their stretches.
constexpr std::int64_t kBoth = 7 * 24 * 60 * kNsPerMinute;

/// A file for half an hour.
archive::Archive::Options short_periods(std::int64_t fine_ns) {
  archive::Archive::Options options = TestHistory::options("this boot");
  options.period_ns = 30 * kNsPerMinute;
  options.fine_ns = fine_ns;
  return options;
}

/// Of 75 minutes and an empty one, in three files: with three threads of one process, and 16 addresses of one function.
constexpr std::uint64_t kRecorded = 76;
struct Recorded {
  explicit Recorded(std::int64_t fine_ns = kAtOnce)
      : on_disk(std::make_unique<TestHistory>(before, folder(), short_periods(fine_ns))) {
    for (int minute = 0; minute < 75; ++minute) {
      const std::uint64_t address = 0x20 + static_cast<std::uint64_t>(minute % 16);
      add(before, kServer, 203, kBob, {code(0x10), code(address)});
      sample(before, 1);
      on_disk->history.write();
    }
    end(before, *on_disk);
  }
  [[nodiscard]] std::string folder() const { return directory.path("history"); }

  const TemporaryDirectory directory;
  TestStore before{kCountsAlone};
  std::unique_ptr<TestHistory> on_disk;
};

std::vector<Period> periods_in(const std::string& folder) { return archive::list_periods(folder).value().periods; }

/// Nothing else is in the folder but these databases, and a lock.
bool has_leftovers(const std::string& folder) {
  const auto is_left = [&](const std::filesystem::directory_entry& entry) {
    const std::string path = entry.path();
    const auto periods = periods_in(folder);
    return entry.path().filename() != "lock" && std::none_of(periods.begin(), periods.end(), [&](const Period& period) {
             return path.starts_with(archive::period_path(folder, period));
           });
  };
  return std::any_of(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator(), is_left);
}

/// Writes the minutes of a database anew as flamed's first versions did.
void refer_by_numbers(const std::string& file) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const archive::Connection connection(raw);
  auto rows = archive::Statement::prepare(
      raw, "SELECT a.minute, a.block, p.block FROM additions a JOIN pairs p USING (minute) ORDER BY a.minute");
  auto update = archive::Statement::prepare(raw, "UPDATE pairs SET block = ? WHERE minute = ?");
  archive::StackPlaces places;
  std::vector<std::pair<std::int64_t, std::vector<std::byte>>> minutes;
  while (rows->step().value()) {
    places.add(archive::decode_additions(rows->blob(1), places.size()).value());
    const archive::Minute minute = archive::decode_minute(rows->blob(2), places).value();
    minutes.emplace_back(rows->number(0), archive::encode(minute).value());
    REQUIRE(minutes.back().second.front() == std::byte{1});
  }
  REQUIRE(minutes.size() >= 30);
  for (const auto& [minute, block] : minutes) REQUIRE(update->bind(1, block).bind(2, minute).run());
}

/// As often as it takes for all files.
void coarsen(TestHistory& on_disk) {
  for (int i = 0; i < 10; ++i) on_disk.history.coarsen();
}

/// A daemon that begins two hours later.
struct Later {
  Later(const TestStore& before, std::string folder, std::int64_t fine_ns = kAtOnce)
      : on_disk(begin(before), std::move(folder), short_periods(fine_ns)) {}
  TestStore& begin(const TestStore& before) {
    test.clock.advance_ns(before.clock.wall().ns + 120 * kNsPerMinute - test.clock.wall().ns);
    test.store.begin();
    test.pass_minutes(1);
    return test;
  }
  Snapshot with(const WallWindow& window) { return on_disk.history.past().with(test.store.snapshot(), {&window, 1}); }

  TestStore test{kCountsAlone};
  TestHistory on_disk;
  TestNamer recent_namer;
  HistoryNamer namer{recent_namer, &on_disk.history.past()};
};

WallWindow minutes(int from, int to) { return {{kNoon.ns + from * kNsPerMinute}, {kNoon.ns + to * kNsPerMinute}}; }

/// A flame graph, and a table of processes.
std::string answers_of(const Snapshot& snapshot, const WallWindow& window, store::FrameNamer& namer) {
  store::QueryBudget budget;
  const Selection selection{window};
  std::vector<std::string> lines = store::test::folded(store::build_profile(snapshot, selection, namer));
  std::sort(lines.begin(), lines.end());
  const auto usage = store::process_usage(snapshot, selection, budget).value();
  for (const store::ProcessUsage& row : usage.rows) {
    lines.push_back(std::to_string(row.info.id.pid) + " " + row.info.executable + " " + row.info.unit + " " +
                    std::to_string(row.samples));
  }
  lines.push_back(std::to_string(usage.quality.truncated_total()) + " truncated, " +
                  std::to_string(usage.quality.lost_total()) + " lost");
  return test::joined(lines);
}

void change(const std::string& path, const char* sql) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const archive::Connection connection(raw);
  const Status changed = archive::run(raw, sql);
  INFO((changed ? std::string() : changed.error().message()));
  REQUIRE(changed.ok());
}

}  // namespace

TEST_CASE("stretches answer as their minutes did, for each viewer, and say their resolution") {
  Recorded recorded;
  recorded.on_disk.reset();
  Later after(recorded.before, recorded.folder());
  const WallWindow window = minutes(0, 60);
  const auto of_viewers = [&] {
    std::vector<std::string> texts;
    const Snapshot all = after.with(window);
    texts.push_back(answers_of(all, window, after.namer));
    for (const std::uint32_t viewer : {kAlice, kBob, 7U}) {
      texts.push_back(answers_of(store::seen_by(all, viewer), window, after.namer));
    }
    return texts;
  };
  const std::vector<std::string> expected = of_viewers();
  sample(after.test, 2);
  after.on_disk.history.write();
  coarsen(after.on_disk);
  CHECK(periods_in(recorded.folder()) == std::vector<Period>{{1, true}, {2, true}, {3, true}, {4}});
  CHECK_FALSE(has_leftovers(recorded.folder()));
  CHECK(of_viewers() == expected);
  const auto checked = archive::check_history(recorded.folder());
  CHECK(checked->problems.empty());
  CHECK(checked->minutes > kRecorded);

  store::QueryBudget budget;
  const WallWindow within = minutes(13, 17);
  const auto usage = store::process_usage(after.with(within), Selection{within}, budget).value();
  CHECK(usage.resolution_ns == kStretchNs);
  CHECK(usage.used.from == minutes(10, 20).from);
  CHECK(usage.used.to == minutes(10, 20).to);
  CHECK(usage.total_samples == 10U * 4);
}

TEST_CASE("stretches and their sums say of a process what was known later") {
  const TemporaryDirectory directory;
  TestStore before{kCountsAlone};
  TestHistory on_disk(before, directory.path("history"), short_periods(kAtOnce));
  const ProcessId ends{300, 7000};
  store::ProcessInfo info = test::info_of(ends, "/bin/ends");
  before.store.update_process(info);
  add(before, ends, 300, kAlice, {code(0x10)});
  for (int minute = 0; minute < 40; ++minute) {
    test::sample_once(before, minute);
    if (minute == 12) {
      info.ended = before.clock.wall();
      before.store.update_process(info);
    }
    before.pass_minutes(1);
    on_disk.history.write();
  }
  end(before, on_disk);
  coarsen(on_disk);
  REQUIRE(periods_in(directory.path("history")).front() == Period{1, true});
  CHECK(archive::check_history(directory.path("history"))->problems.empty());
  Later after(before, directory.path("history"));
  const WallWindow window = minutes(0, 10);
  for (const std::int64_t step_ns : {std::int64_t{0}, 10 * kNsPerMinute}) {
    CAPTURE(step_ns);
    store::QueryBudget budget;
    const Snapshot with = after.on_disk.history.past().with(after.test.store.snapshot(), {&window, 1},
                                                            {.only_processes = step_ns != 0, .step_ns = step_ns});
    const auto usage = store::process_usage(with, Selection{window}, budget).value();
    const auto row = std::find_if(usage.rows.begin(), usage.rows.end(),
                                  [&](const store::ProcessUsage& process) { return process.info.id.pid == ends.pid; });
    REQUIRE(row != usage.rows.end());
    REQUIRE(row->info.ended.has_value());
    CHECK(row->info.ended->ns == info.ended->ns);
  }
}

TEST_CASE("long windows are answered from sums, of stretches as of minutes") {
  Recorded recorded;
  const WallWindow window = minutes(-12 * 60, 75);
  const auto slots_and_text = [&] {
    Later after(recorded.before, recorded.folder());
    const store::Detail by_process{.only_processes = true, .step_ns = kStretchNs};
    const Snapshot sums = after.on_disk.history.past().with(after.test.store.snapshot(), {&window, 1}, by_process);
    return std::pair(sums.data().sealed->size(), answers_of(sums, window, after.namer));
  };
  const auto expected = slots_and_text();
  CHECK(expected.first < 12);
  coarsen(*recorded.on_disk);
  CHECK(periods_in(recorded.folder()).front() == Period{1, true});
  CHECK(slots_and_text() == expected);
}

TEST_CASE("threads of a stretch are one for each process and owner, and answers about threads say so") {
  Recorded recorded;
  coarsen(*recorded.on_disk);
  Later after(recorded.before, recorded.folder());
  const WallWindow window = minutes(0, 10);
  store::QueryBudget budget;
  const auto usage = store::thread_usage(after.with(window), Selection{window}, budget).value();
  REQUIRE(usage.rows.size() == 2);
  CHECK(usage.rows[0].comm == "(all threads)");
  CHECK(usage.rows[0].tid == 0);
  CHECK(usage.rows[0].samples == 30);
  CHECK(usage.rows[1].samples == 10);
  CHECK(mentions(usage.warnings, "Threads were not kept apart up to 2026-01-01T12:10:00Z"));
  const auto of_one = store::process_usage(after.with(window), {.window = window, .tids = {201}}, budget).value();
  CHECK(of_one.total_samples == 0);
  CHECK(mentions(of_one.warnings, "Threads were not kept apart"));
  CHECK_FALSE(mentions(store::process_usage(after.with(window), Selection{window}, budget)->warnings, "Threads"));
}

TEST_CASE("addresses of one function are one frame in a stretch") {
  Recorded recorded;
  coarsen(*recorded.on_disk);
  Later after(recorded.before, recorded.folder());
  const WallWindow window = minutes(0, 30);
  const Snapshot snapshot = after.with(window);
  std::size_t pairs = 0;
  for (const store::SealedSlot& sealed : *snapshot.data().sealed) {
    if (sealed.slot->resolution_ns == kStretchNs) pairs += sealed.slot->histogram.entry_count();
  }
  // Of each of three stretches: the shell's stack, and of the server the two that recur and f2 of whatever address.
  CHECK(pairs == 3 * (1 + 3));
  CHECK(answers_of(snapshot, window, after.namer).find("f1;f2 30") != std::string::npos);
}

TEST_CASE("a file that is over gets stretches, and its minutes go when they are two days old by what was recorded") {
  const TemporaryDirectory directory;
  const std::string folder = directory.path("history");
  archive::Archive::Options options = TestHistory::options("boot");
  options.period_ns = 6 * 60 * kNsPerMinute;
  archive::Archive files(folder, options);
  const std::vector<std::byte> block(100, std::byte{1});
  // Each "minute" has an hour.
  const auto append = [&](std::int64_t hour) {
    archive::Minute minute;
    minute.wall_offset_ns = kNoon.ns + hour * 60 * kNsPerMinute;
    minute.end.ns = 60 * kNsPerMinute;
    minute.period_ns = 1;
    REQUIRE(files.prepare(minute.wall_start()).ok());
    REQUIRE(files.append(minute, {block, block}).ok());
  };
  std::int64_t hour = 0;
  for (; hour < 6; ++hour) append(hour);
  CHECK_FALSE(files.next_to_coarsen());
  append(hour++);
  CHECK(files.next_to_coarsen() == 1U);
  std::ofstream(archive::unfinished_path(folder, 1)).flush();
  REQUIRE(files.add_stretches(1).ok());
  CHECK_FALSE(files.next_to_coarsen());
  for (; hour < 48; ++hour) append(hour);
  CHECK_FALSE(files.has_old_minutes());
  // A clock that is a year ahead, for two hours.
  for (std::int64_t ahead = 0; ahead < 2; ++ahead) append(hour + 365 * 24 + ahead);
  CHECK_FALSE(files.has_old_minutes());
  while (!files.has_old_minutes()) {
    REQUIRE(hour < 72);
    append(hour++);
  }
  CHECK(hour + 2 - 6 >= 48);
  files.unlink_old_minutes();
  CHECK_FALSE(files.has_old_minutes());
  CHECK_FALSE(std::filesystem::exists(archive::period_path(folder, {1})));
  CHECK(std::filesystem::exists(archive::period_path(folder, {1, true})));
  CHECK(files.next_to_coarsen() == 2U);
  files.keep_minutes(2);
  CHECK(files.next_to_coarsen() == 3U);
}

TEST_CASE("a file of a host that does little gets its stretches when it is old") {
  const TemporaryDirectory directory;
  archive::Archive::Options options = TestHistory::options("boot");
  options.quiet_bytes = std::uint64_t{2} << 20;
  archive::Archive files(directory.path("history"), options);
  const std::vector<std::byte> block(100, std::byte{1});
  std::optional<std::uint64_t> next;
  std::int64_t hour = 0;
  for (; !next && hour < 120; ++hour) {
    archive::Minute minute;
    minute.wall_offset_ns = kNoon.ns + hour * 60 * kNsPerMinute;
    minute.end.ns = 60 * kNsPerMinute;
    minute.period_ns = 1;
    REQUIRE(files.prepare(minute.wall_start()).ok());
    REQUIRE(files.append(minute, {block, block}).ok());
    next = files.next_to_coarsen();
  }
  CHECK(next == 1U);
  CHECK(hour >= 72);
}

TEST_CASE("while both are there, a window has its minutes if there is room for them, and else stretches, whole") {
  Recorded recorded(kBoth);
  coarsen(*recorded.on_disk);
  CHECK(periods_in(recorded.folder()) == std::vector<Period>{{1, true}, {1}, {2, true}, {2}, {3}});
  CHECK(archive::check_history(recorded.folder())->minutes == kRecorded);
  Later after(recorded.before, recorded.folder(), kBoth);
  constexpr std::size_t kSmall = std::size_t{200} << 10;
  archive::Past small(recorded.folder(), {.boot_id = "this boot", .budget_bytes = kSmall});
  HistoryNamer namer(after.recent_namer, &small);
  const auto with = [&](const WallWindow& window, const store::Detail& detail = {}) {
    return small.with(after.test.store.snapshot(), {&window, 1}, detail);
  };
  const auto resolution = [](const Snapshot& snapshot, const WallWindow& window) {
    store::QueryBudget budget;
    return store::process_usage(snapshot, Selection{window}, budget)->resolution_ns;
  };
  const WallWindow all = minutes(0, 60);
  CHECK(resolution(after.with(all), all) == kNsPerMinute);
  CHECK(resolution(with(all), all) == kStretchNs);
  CHECK(answers_of(with(all), all, namer) == answers_of(after.with(all), all, after.namer));
  CHECK(with(all).data().warnings.empty());
  const WallWindow some = minutes(24, 34);
  CHECK(resolution(with(some), some) == kNsPerMinute);
  CHECK(answers_of(with(some), some, namer) == answers_of(after.with(some), some, after.namer));
  CHECK(resolution(with(all, {.only_minutes = true}), all) == kNsPerMinute);
  // An export has the minutes.
  const auto excerpt = archive::write_excerpt(recorded.folder(), some, recorded.directory.path("file.db"));
  REQUIRE(excerpt.ok());
  CHECK(excerpt->minutes == 10);
  CHECK(excerpt->stretch.from == some.from);
}

TEST_CASE("what is kept for the next question is within the budget, whatever dictionaries its minutes have") {
  const Recorded recorded(kBoth);
  Later after(recorded.before, recorded.folder(), kBoth);
  const WallWindow all = minutes(0, 76);
  std::size_t fewest = kRecorded;
  std::size_t most = 0;
  for (std::size_t budget = 90'000; budget < 180'000; budget += 3000) {
    archive::Past past(recorded.folder(), {.boot_id = "this boot", .budget_bytes = budget});
    const Snapshot read = past.with(after.test.store.snapshot(), {&all, 1}, {.only_minutes = true});
    CAPTURE(budget);
    CHECK(past.bytes() <= budget);
    fewest = std::min(fewest, read.data().sealed->size());
    most = std::max(most, read.data().sealed->size());
  }
  CHECK(fewest < kRecorded);
  CHECK(most >= kRecorded);
}

TEST_CASE("sums that are damaged or missing are made anew with the stretches") {
  Recorded recorded(kBoth);
  const WallWindow window = minutes(-24 * 60, 60);
  const store::Detail by_process{.only_processes = true, .step_ns = kStretchNs};
  const auto slots_and_text = [&] {
    Later after(recorded.before, recorded.folder(), kBoth);
    const Snapshot sums = after.on_disk.history.past().with(after.test.store.snapshot(), {&window, 1}, by_process);
    return std::pair(sums.data().sealed->size(), answers_of(sums, window, after.namer));
  };
  const auto expected = slots_and_text();
  const char* const damage =
      GENERATE("UPDATE sum SET pairs = (SELECT additions FROM sum WHERE id = 1) WHERE id = 2",
               "UPDATE sum SET additions = zeroblob(length(additions)) WHERE id = 1",
               "UPDATE sum SET first = first + 1 WHERE id = 2", "DELETE FROM sum WHERE id = 3", "DROP TABLE sum");
  CAPTURE(damage);
  change(archive::period_path(recorded.folder(), {1}), damage);
  CHECK(slots_and_text().first > expected.first);
  coarsen(*recorded.on_disk);
  CHECK(slots_and_text() == expected);
  CHECK(archive::check_file(archive::period_path(recorded.folder(), {1, true})).problems.empty());
}

TEST_CASE("stretches that can't be read are made anew, as long as there are minutes") {
  Recorded recorded(kBoth);
  coarsen(*recorded.on_disk);
  recorded.on_disk.reset();
  const std::string stretches = archive::period_path(recorded.folder(), {1, true});
  std::filesystem::resize_file(stretches, 1000);
  Later after(recorded.before, recorded.folder(), kBoth);
  CHECK(answers_of(after.with(minutes(0, 60)), minutes(0, 60), after.namer).find("f1;f2") != std::string::npos);
  sample(after.test, 2);
  after.on_disk.history.write();
  CHECK(after.on_disk.history.state().archive.unusable.size() == 1);
  coarsen(after.on_disk);
  CHECK(archive::check_file(stretches).problems.empty());
  CHECK(archive::check_history(recorded.folder())->problems.empty());
}

TEST_CASE("whenever the making of stretches is cut off, the minutes are there until the stretches are") {
  Recorded recorded;
  const std::string expected = [&] {
    Later after(recorded.before, recorded.folder());
    return answers_of(after.with(minutes(0, 75)), minutes(0, 75), after.namer);
  }();
  recorded.on_disk.reset();
  // What the disk has after so many steps: of the last one, before and after each of the two that replace the minutes.
  const auto copy = [&](const std::string& name) {
    std::string path = recorded.directory.path(name);
    std::filesystem::copy(recorded.folder(), path, std::filesystem::copy_options::recursive);
    return path;
  };
  std::vector<std::string> folders;
  {
    auto coarsening = archive::Coarsening::begin(recorded.folder(), 1);
    REQUIRE(coarsening.ok());
    Result<bool> is_whole = false;
    for (int step = 0; is_whole && !*is_whole; ++step) {
      if (step % 5 == 0) folders.push_back(copy("cut-" + std::to_string(step)));
      is_whole = (*coarsening)->step();
    }
    REQUIRE(is_whole.ok());
    folders.push_back(copy("whole"));
    std::filesystem::rename(archive::unfinished_path(recorded.folder(), 1),
                            archive::period_path(recorded.folder(), {1, true}));
    folders.push_back(copy("renamed"));
  }
  CHECK(folders.size() == 30 / 5 + 1 + 2);
  for (const std::string& folder : folders) {
    CAPTURE(folder);
    const auto fine = archive::check_history(folder);
    CHECK(fine->problems.empty());
    CHECK(fine->minutes == kRecorded);
    Later after(recorded.before, folder);
    CHECK(answers_of(after.with(minutes(0, 75)), minutes(0, 75), after.namer) == expected);
    sample(after.test, 2);
    after.on_disk.history.write();
    CHECK_FALSE(has_leftovers(folder));
    coarsen(after.on_disk);
    CHECK(periods_in(folder).front() == Period{1, true});
    CHECK(answers_of(after.with(minutes(0, 75)), minutes(0, 75), after.namer) == expected);
  }
}

TEST_CASE("a daemon that is killed while it makes stretches has every minute once when it starts again") {
  Recorded recorded;
  const std::string expected = [&] {
    Later after(recorded.before, recorded.folder());
    return answers_of(after.with(minutes(0, 75)), minutes(0, 75), after.namer);
  }();
  recorded.on_disk.reset();
  const auto make_stretches = [&](const std::string& folder, int told) {
    Later daemon(recorded.before, folder);
    sample(daemon.test, 2);
    daemon.on_disk.history.write();
    if (::write(told, "b", 1) == 1) coarsen(daemon.on_disk);
  };
  constexpr int kKills = 30;
  std::chrono::microseconds longest{};
  int unfinished = 0;
  for (int kill = 0; kill <= kKills; ++kill) {
    const std::string folder = recorded.directory.path("kill-" + std::to_string(kill));
    std::filesystem::copy(recorded.folder(), folder, std::filesystem::copy_options::recursive);
    int ends[2] = {};
    REQUIRE(::pipe(ends) == 0);
    const Fd from_child(ends[0]);
    Fd to_parent(ends[1]);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      make_stretches(folder, to_parent.get());
      ::_exit(0);
    }
    to_parent.reset();
    char begun = 0;
    REQUIRE(::read(from_child.get(), &begun, 1) == 1);
    const auto began = std::chrono::steady_clock::now();
    int status = 0;
    if (kill == 0) {
      // Nobody kills the first one: it shows how long all of it takes.
      REQUIRE(::waitpid(child, &status, 0) == child);
      longest = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began);
      REQUIRE(status == 0);
      REQUIRE(periods_in(folder).front() == Period{1, true});
    } else {
      std::this_thread::sleep_until(began + longest * kill / kKills);
      REQUIRE(::kill(child, SIGKILL) == 0);
      REQUIRE(::waitpid(child, &status, 0) == child);
    }
    CAPTURE(kill, longest.count());
    if (has_leftovers(folder)) ++unfinished;
    CHECK(archive::check_history(folder)->problems.empty());
    Later after(recorded.before, folder);
    CHECK(answers_of(after.with(minutes(0, 75)), minutes(0, 75), after.namer) == expected);
    sample(after.test, 2);
    after.on_disk.history.write();
    CHECK_FALSE(has_leftovers(folder));
    coarsen(after.on_disk);
    CHECK(periods_in(folder).front() == Period{1, true});
    CHECK(answers_of(after.with(minutes(0, 75)), minutes(0, 75), after.namer) == expected);
  }
  CHECK(unfinished > 0);
}

TEST_CASE("stretches that are not finished leave nothing behind") {
  Recorded recorded;
  {
    auto coarsening = archive::Coarsening::begin(recorded.folder(), 1);
    REQUIRE(coarsening.ok());
    REQUIRE((*coarsening)->step().ok());
    CHECK(has_leftovers(recorded.folder()));
  }
  CHECK_FALSE(has_leftovers(recorded.folder()));
}

TEST_CASE("a database of which something can't be read keeps its minutes") {
  Recorded recorded;
  const char* const damage =
      GENERATE("UPDATE pairs SET block = zeroblob(length(block)) WHERE minute = 7",
               "UPDATE additions SET block = zeroblob(length(block)) WHERE minute = 1",
               "UPDATE names SET block = zeroblob(length(block)) WHERE minute = 2",
               "UPDATE minute SET wall_end_ns = wall_end_ns + 1 WHERE id = 7", "DELETE FROM pairs WHERE minute = 7");
  CAPTURE(damage);
  change(archive::period_path(recorded.folder(), {1}), damage);
  coarsen(*recorded.on_disk);
  CHECK(periods_in(recorded.folder()) == std::vector<Period>{{1}, {2, true}, {3}});
  CHECK_FALSE(has_leftovers(recorded.folder()));
}

TEST_CASE("a database of the first versions answers as it does today, and becomes coarse") {
  Recorded recorded;
  const WallWindow window = minutes(0, 30);
  const auto answer = [&] {
    Later later(recorded.before, recorded.folder());
    return answers_of(later.with(window), window, later.namer);
  };
  const std::string today = answer();
  const std::string file = archive::period_path(recorded.folder(), {1});
  refer_by_numbers(file);
  change(file,
         "ALTER TABLE minute DROP COLUMN first; ALTER TABLE minute DROP COLUMN names_from; DROP TABLE sum; "
         "DROP TABLE samples; DROP TABLE states");
  CHECK(answer() == today);
  coarsen(*recorded.on_disk);
  CHECK(periods_in(recorded.folder()).front() == Period{1, true});
  CHECK(archive::check_history(recorded.folder())->minutes == kRecorded);
}

TEST_CASE("a minute that was written again in the next file is in no stretch of the one before") {
  Recorded recorded;
  // The last minute of the first file, which could not be finished there.
  change(archive::period_path(recorded.folder(), {2}),
         "UPDATE minute SET sequence = (SELECT min(sequence) FROM minute) - 1 WHERE id = 1; DELETE FROM sum");
  coarsen(*recorded.on_disk);
  const auto checked = archive::check_history(recorded.folder());
  CHECK(checked->problems.empty());
  // The second file's row is not true, so it keeps its minutes.
  CHECK(periods_in(recorded.folder()) == std::vector<Period>{{1, true}, {2}, {3}});
  CHECK(checked->minutes == kRecorded - 1);
}

TEST_CASE("an excerpt of stretches answers as the history, and a damaged stretch is noticed") {
  Recorded recorded;
  coarsen(*recorded.on_disk);
  const auto excerpt = archive::write_excerpt(recorded.folder(), minutes(14, 65), recorded.directory.path("file.db"));
  REQUIRE(excerpt.ok());
  CHECK(excerpt->problems.empty());
  CHECK(excerpt->minutes == 50 + 5);
  CHECK(excerpt->stretch.from == minutes(10, 65).from);
  Result<archive::Connection> connection = archive::connect_unread(recorded.directory.path("file.db"));
  REQUIRE(connection.ok());
  FileSources sources("file.db", 1U << 20);
  REQUIRE(sources.read(std::move(*connection)).ok());
  const WallWindow window = minutes(10, 60);
  Later after(recorded.before, recorded.folder());
  CHECK(answers_of(sources.with_history(sources.await_snapshot(), {&window, 1}, {}), window, sources.namer()) ==
        answers_of(after.with(window), window, after.namer));

  change(archive::period_path(recorded.folder(), {1, true}), "UPDATE minute SET first = first + 1 WHERE id = 2");
  CHECK(archive::check_history(recorded.folder())->problems.size() == 1);
  Later again(recorded.before, recorded.folder());
  store::QueryBudget budget;
  const auto usage = store::process_usage(again.with(window), Selection{window}, budget).value();
  CHECK(usage.total_samples == 40U * 4);
  CHECK(mentions(usage.warnings, "can't be read"));
}

}  // namespace flamed::daemon
