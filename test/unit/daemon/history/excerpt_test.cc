// SPDX-License-Identifier: Apache-2.0
//
// A stretch of the history as one file, and what is answered from it.
#include "archive/reading/excerpt.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "archive/files/period_file.h"
#include "archive/files/period_names.h"
#include "archive/files/sqlite.h"
#include "archive/reading/check.h"
#include "daemon/file_sources.h"
#include "store/query/query.h"
#include "test/catch.h"
#include "test/unit/daemon/history/history_answers.h"
#include "test/unit/daemon/history/history_fixture.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

using archive::Excerpt;
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
using test::answers_without_addresses;
using test::end;
using test::kAlice;
using test::kBob;
using test::kCountsAlone;
using test::kShell;
using test::sample;
using test::TestHistory;

constexpr std::size_t kKeptBytes = 1U << 20;

WallWindow minutes(int from, int to) { return {{kNoon.ns + from * kNsPerMinute}, {kNoon.ns + to * kNsPerMinute}}; }

/// Ten minutes of one run.
struct Recorded {
  Recorded() {
    sample(before, 10);
    end(before, on_disk);
  }
  [[nodiscard]] Result<Excerpt> excerpt(const WallWindow& window, const std::string& name = "file.db") const {
    return archive::write_excerpt(folder.path("history"), window, folder.path(name));
  }

  const TemporaryDirectory folder;
  TestStore before{kCountsAlone};
  TestHistory on_disk{before, folder.path("history")};
};

/// Of the file, as flamed --open has it.
std::unique_ptr<FileSources> opened(const std::string& path) {
  Result<archive::Connection> connection = archive::connect_unread(path);
  REQUIRE(connection.ok());
  auto sources = std::make_unique<FileSources>("file.db", kKeptBytes);
  const Status read = sources->read(std::move(*connection));
  INFO((read ? std::string() : read.error().message()));
  REQUIRE(read.ok());
  return sources;
}

Error refusal_of(const std::string& path) {
  Result<archive::Connection> connection = archive::connect_unread(path);
  if (!connection) return connection.error();
  FileSources sources("file.db", kKeptBytes);
  const Status read = sources.read(std::move(*connection));
  REQUIRE_FALSE(read.ok());
  return read.error();
}

Snapshot with(const FileSources& sources, const WallWindow& window) {
  return sources.with_history(sources.await_snapshot(), {&window, 1}, {});
}

void change(const std::string& path, const char* sql) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const archive::Connection connection(raw);
  const Status changed = archive::run(raw, sql);
  INFO((changed ? std::string() : changed.error().message()));
  REQUIRE(changed.ok());
}

std::string text_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("an excerpt answers the same as the store, byte for byte") {
  const Recorded recorded;
  const WallWindow window = minutes(2, 8);
  const Result<Excerpt> excerpt = recorded.excerpt(window);
  REQUIRE(excerpt.ok());
  CHECK(excerpt->problems.empty());
  CHECK(excerpt->minutes == 6);
  CHECK(excerpt->stretch.from == window.from);
  CHECK(excerpt->stretch.to == window.to);
  const auto sources = opened(recorded.folder.path("file.db"));
  TestNamer namer;
  const WallWindow within = minutes(4, 7);
  for (const auto& narrow : {Selection{within}, Selection{.window = within, .processes = {{kShell.pid}}},
                             Selection{.window = within, .tids = {202}}, Selection{.window = within, .uids = {kBob}},
                             Selection{.window = within, .side = store::Side::kKernel}}) {
    CHECK(answers_without_addresses(with(*sources, within), narrow, sources->namer()) ==
          answers_without_addresses(recorded.before.store.snapshot(), narrow, namer));
  }
  // The addresses of a kernel mean nothing elsewhere, so only its functions' names are kept.
  const Selection without_kernel{.window = within, .processes = {{kShell.pid}}};
  CHECK(answers(with(*sources, within), without_kernel, sources->namer()) ==
        answers(recorded.before.store.snapshot(), without_kernel, namer));
}

TEST_CASE("an excerpt says of its processes what was known later") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 3);
  on_disk.history.write();
  store::ProcessInfo info = test::info_of(kShell, "/bin/shell");
  info.ended = before.clock.wall();
  before.store.update_process(info);
  test::sample_once(before, 1);
  before.pass_minutes(1);
  end(before, on_disk);
  const WallWindow window = minutes(0, 2);
  REQUIRE(archive::write_excerpt(folder.path("history"), window, folder.path("file.db")).ok());
  CHECK(archive::check_file(folder.path("file.db")).problems.empty());
  const auto sources = opened(folder.path("file.db"));
  TestNamer namer;
  CHECK(answers_without_addresses(with(*sources, window), Selection{window}, sources->namer()) ==
        answers_without_addresses(before.store.snapshot(), Selection{window}, namer));
}

TEST_CASE("an excerpt without what was known of processes later has all samples, and says so") {
  const TemporaryDirectory folder;
  TestStore before(kCountsAlone);
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 3);
  on_disk.history.write();
  store::ProcessInfo info = test::info_of(kShell, "/bin/shell");
  info.ended = before.clock.wall();
  before.store.update_process(info);
  before.pass_minutes(1);
  end(before, on_disk);
  change(archive::period_path(folder.path("history"), {1}), "UPDATE states SET block = zeroblob(length(block))");
  const auto excerpt = archive::write_excerpt(folder.path("history"), minutes(0, 2), folder.path("file.db"));
  REQUIRE(excerpt.ok());
  CHECK(excerpt->minutes == 2);
  REQUIRE(excerpt->problems.size() == 1);
  CHECK(excerpt->problems.front().find("when some processes ended is not known") != std::string::npos);
}

TEST_CASE("an excerpt has the single samples of its minutes, if they are on disk") {
  const TemporaryDirectory folder;
  TestStore before;
  TestHistory on_disk(before, folder.path("history"));
  sample(before, 20);
  end(before, on_disk);
  REQUIRE(archive::write_excerpt(folder.path("history"), minutes(8, 19), folder.path("file.db")).ok());
  const auto sources = opened(folder.path("file.db"));
  TestNamer namer;
  const WallWindow within{{kNoon.ns + 17 * kNsPerMinute - 5 * kNsPerSecond}, {kNoon.ns + 18 * kNsPerMinute + 1}};
  const store::Profile profile = store::build_profile(with(*sources, within), Selection{within}, sources->namer());
  CHECK(profile.nodes.front().total_samples == 2 * 3);
  CHECK(profile.resolution_ns == 1);
  CHECK(answers_without_addresses(with(*sources, within), Selection{within}, sources->namer()) ==
        answers_without_addresses(before.store.snapshot(), Selection{within}, namer));
  const WallWindow earlier{{kNoon.ns + 8 * kNsPerMinute}, {kNoon.ns + 8 * kNsPerMinute + 1}};
  CHECK(store::build_profile(with(*sources, earlier), Selection{earlier}, sources->namer()).resolution_ns ==
        kNsPerMinute);
}

TEST_CASE("an excerpt of several runs has all of them, and the time between them as a gap") {
  const TemporaryDirectory folder;
  TestStore test(kCountsAlone);
  {
    TestHistory first(test, folder.path("history"));
    sample(test, 3);
    test.pass(20);
    end(test, first);
  }
  const WallTime ended = test.clock.wall();
  TestStore later(kCountsAlone);
  later.clock.advance_ns(ended.ns + 90 * kNsPerSecond - later.clock.wall().ns);
  later.store.begin();
  TestHistory second(later, folder.path("history"), "another boot");
  sample(later, 3);
  end(later, second);
  const WallWindow all{kNoon, later.clock.wall()};
  const Result<Excerpt> excerpt = archive::write_excerpt(folder.path("history"), all, folder.path("file.db"));
  REQUIRE(excerpt.ok());
  const auto sources = opened(folder.path("file.db"));
  const store::Profile profile = store::build_profile(with(*sources, all), Selection{all}, sources->namer());
  CHECK(profile.nodes.front().total_samples == 2 * 3 * 3);
  REQUIRE(profile.missing.size() == 1);
  CHECK(profile.missing.front().reason == store::GapReason::kNotRunning);
  CHECK(profile.missing.front().from == ended);
  CHECK(profile.missing.front().to.ns == ended.ns + 90 * kNsPerSecond);
}

TEST_CASE("an excerpt knows nothing of what was only sampled outside of it, but the parents of its processes") {
  constexpr ProcessId kParent{50, 400};
  constexpr ProcessId kElsewhere{60, 450};
  const TemporaryDirectory folder;
  TestStore test(kCountsAlone);
  TestHistory on_disk(test, folder.path("history"));
  for (const auto& [id, program] : {std::pair{kParent, "/usr/bin/the-parent"}, {kElsewhere, "/usr/bin/elsewhere"}}) {
    test.store.update_process(test::info_of(id, program));
    add(test, id, id.pid, kAlice, {code(0x77)});
  }
  test.pass_minutes(1);
  store::ProcessInfo child = test::info_of(kShell, "/bin/shell");
  child.parent_pid = kParent.pid;
  child.parent_start_ticks = kParent.start_ticks;
  test.store.update_process(child);
  add(test, kShell, kShell.pid, kAlice, {code(0x10)});
  test.pass_minutes(1);
  end(test, on_disk);
  const WallWindow window = minutes(1, 2);
  REQUIRE(archive::write_excerpt(folder.path("history"), window, folder.path("file.db")).ok());
  const auto sources = opened(folder.path("file.db"));
  const Snapshot snapshot = with(*sources, window);
  CHECK(store::knows(snapshot, {kShell.pid, kShell.start_ticks}));
  CHECK(store::knows(snapshot, {kParent.pid, kParent.start_ticks}));
  CHECK_FALSE(store::knows(snapshot, {kElsewhere.pid, kElsewhere.start_ticks}));
  const Selection tree{.window = window, .trees = {{kParent.pid}}};
  CHECK(store::build_profile(snapshot, tree, sources->namer()).nodes.front().total_samples == 1);
}

TEST_CASE("an excerpt has the names that came with later minutes") {
  const TemporaryDirectory folder;
  TestStore test(kCountsAlone);
  TestHistory on_disk(test, folder.path("history"));
  on_disk.may_name = false;
  sample(test, 2);
  test.pass_minutes(1);
  on_disk.history.write();
  on_disk.may_name = true;
  sample(test, 1);
  end(test, on_disk);
  REQUIRE(archive::write_excerpt(folder.path("history"), minutes(0, 1), folder.path("file.db")).ok());
  const auto sources = opened(folder.path("file.db"));
  const WallWindow window = minutes(0, 1);
  const store::Profile profile = store::build_profile(with(*sources, window), Selection{window}, sources->namer());
  CHECK(profile.nodes.front().total_samples == 3);
  CHECK(api::render_folded(profile).find("[unknown]") == std::string::npos);
}

TEST_CASE("an excerpt is one file that only its owner may read") {
  const Recorded recorded;
  REQUIRE(recorded.excerpt(minutes(0, 5)).ok());
  struct stat status {};
  REQUIRE(::stat(recorded.folder.path("file.db").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0600U);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(recorded.folder.path(""))) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"file.db", "history"});
}

TEST_CASE("no file is overwritten, and none is left where nothing could be exported") {
  const Recorded recorded;
  const std::string path = recorded.folder.path("file.db");
  std::ofstream(path) << "mine";
  const Result<Excerpt> over = recorded.excerpt(minutes(0, 5));
  REQUIRE_FALSE(over.ok());
  CHECK(over.error().code() == EEXIST);
  CHECK(over.error().message().find("exists, and is not overwritten") != std::string::npos);
  CHECK(text_in(path) == "mine");

  const Result<Excerpt> empty = recorded.excerpt(minutes(60, 70), "empty.db");
  REQUIRE_FALSE(empty.ok());
  CHECK(empty.error().message().find("which has some from 2026-") != std::string::npos);
  const Result<Excerpt> nowhere =
      archive::write_excerpt(recorded.folder.path("missing"), minutes(0, 5), recorded.folder.path("nowhere.db"));
  REQUIRE_FALSE(nowhere.ok());
  CHECK(nowhere.error().message().find("there is no history: ") == 0);
  CHECK_FALSE(recorded.excerpt(minutes(0, 5), "missing/file.db").ok());
  for (const char* name : {"empty.db", "nowhere.db"}) CHECK_FALSE(std::filesystem::exists(recorded.folder.path(name)));
}

TEST_CASE("minutes that can't be read are missing in an excerpt, which says so") {
  const Recorded recorded;
  change(recorded.folder.path("history/history-00000001.db"),
         "UPDATE pairs SET block = x'0100' WHERE minute = 4; UPDATE additions SET block = x'0100' WHERE minute = 8");
  const Result<Excerpt> excerpt = recorded.excerpt(minutes(0, 10));
  REQUIRE(excerpt.ok());
  CHECK(excerpt->minutes == 6);
  REQUIRE(excerpt->problems.size() == 4);
  CHECK(excerpt->problems.front().find("the minute from 2026-") == 0);
  CHECK(opened(recorded.folder.path("file.db"))->facts().minutes == 6);
}

TEST_CASE("a file says of which host and which stretch it is, and its end is now") {
  const Recorded recorded;
  const std::string path = recorded.folder.path("file.db");
  REQUIRE(recorded.excerpt(minutes(2, 8)).ok());
  const auto sources = opened(path);
  REQUIRE(sources->file().has_value());
  CHECK(sources->file()->host == "test-host");
  CHECK(sources->file()->stretch.from == minutes(2, 8).from);
  CHECK(sources->clock().wall() == minutes(2, 8).to);
  CHECK(sources->cpus() == 4);
  const std::string detail = sources->health().components.front().detail;
  CHECK(detail.find("6 minutes of the host test-host, from 2026-") == 0);
  // A window outside of the file.
  const store::Profile none =
      store::build_profile(with(*sources, minutes(-60, -50)), Selection{minutes(-60, -50)}, sources->namer());
  CHECK(none.nodes.front().total_samples == 0);
  CHECK(mentions(none.warnings, "outside of the retained time"));

  change(path, "UPDATE session SET host = 'a' || char(10) || '<b>' || char(27)");
  CHECK(opened(path)->file()->host == "a?<b>?");
  change(path, "ALTER TABLE session DROP COLUMN host");
  CHECK(opened(path)->file()->host.empty());
}

TEST_CASE("the last samples of a file are before its now, of which requests know whole milliseconds") {
  const TemporaryDirectory folder;
  TestStore test;
  TestHistory on_disk(test, folder.path("history"));
  sample(test, 1);
  test.clock.advance_ns(7 * kNsPerMs + 400'000);
  add(test, kShell, 100, kAlice, {code(0x10)});
  test.clock.advance_ns(100'000);
  end(test, on_disk);
  REQUIRE(archive::write_excerpt(folder.path("history"), minutes(0, 2), folder.path("file.db")).ok());
  const auto sources = opened(folder.path("file.db"));
  CHECK(sources->facts().stretch.to == test.clock.wall());
  const std::int64_t now_ms = sources->clock().wall().ns / kNsPerMs;
  const WallWindow window{kNoon, {now_ms * kNsPerMs}};
  const store::Profile profile = store::build_profile(with(*sources, window), Selection{window}, sources->namer());
  CHECK(profile.nodes.front().total_samples == 3 + 1);
}

TEST_CASE("a database of a history folder can be opened as it is") {
  const Recorded recorded;
  {
    // As when the daemon ends.
    sqlite3* raw = nullptr;
    const std::string path = recorded.folder.path("history/history-00000001.db");
    REQUIRE(sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
    const archive::Connection connection(raw);
    REQUIRE(archive::run(raw, "PRAGMA wal_checkpoint(TRUNCATE)").ok());
  }
  const auto sources = opened(recorded.folder.path("history/history-00000001.db"));
  const WallWindow window = minutes(0, 10);
  CHECK(store::build_profile(with(*sources, window), Selection{window}, sources->namer()).nodes.front().total_samples ==
        30);
}

TEST_CASE("files that are damaged, newer, or no history are refused with the reason") {
  const Recorded recorded;
  const auto copy = [&](const std::string& name) {
    REQUIRE(recorded.excerpt(minutes(0, 10), name).ok());
    return recorded.folder.path(name);
  };
  const std::string newer = copy("newer.db");
  change(newer, "PRAGMA user_version = 2");
  CHECK(refusal_of(newer).message() == "version 2; this flamed has version 1");

  const std::string foreign = recorded.folder.path("foreign.db");
  std::ofstream(foreign).close();
  change(foreign, "CREATE TABLE mine (a INTEGER)");
  CHECK(refusal_of(foreign).message() == "not a history of flamed");

  const std::string text = recorded.folder.path("text");
  std::ofstream(text) << std::string(5000, 'a');
  CHECK(refusal_of(text).code() == EBADMSG);

  const std::string cut = copy("cut.db");
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  CHECK(refusal_of(cut).code() == EBADMSG);

  const std::string empty = copy("empty.db");
  change(empty, "DELETE FROM minute");
  CHECK(refusal_of(empty).message() == "it has no minutes");

  const std::string blocks = copy("blocks.db");
  change(blocks, "UPDATE pairs SET block = x'0100'");
  CHECK(refusal_of(blocks).message().find("damaged: none of its minutes can be read") == 0);
}

}  // namespace flamed::daemon
