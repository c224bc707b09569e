// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/stack_places.h"
#include "archive/files/period_reader.h"
#include "archive/files/sqlite.h"
#include "archive/reading/check.h"
#include "base/thread.h"
#include "test/catch.h"
#include "test/unit/daemon/history/history_fixture.h"
#include "test/unit/store/store_fixture.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

using flamed::test::TemporaryDirectory;
using store::test::code;
using store::test::TestStore;

struct HistoryInFolder {
  explicit HistoryInFolder(TestStore& test) : on_disk(test, folder.path("history")) {}

  TemporaryDirectory folder;
  test::TestHistory on_disk;
  History& history = on_disk.history;
};

struct Written {
  archive::Additions additions;
  archive::Minute minute;
};

/// The minutes of the first session in a file.
std::vector<Written> read(const std::string& path) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  const archive::Connection connection(raw);
  Result<archive::Statement> rows = archive::Statement::prepare(
      raw,
      "SELECT additions.block, pairs.block FROM minute JOIN additions ON additions.minute = minute.id "
      "JOIN pairs ON pairs.minute = minute.id WHERE session = 1 ORDER BY minute.id");
  REQUIRE(rows.ok());
  std::vector<Written> all;
  archive::StackPlaces places;
  for (;;) {
    const Result<bool> row = rows->step();
    REQUIRE(row.ok());
    if (!*row) return all;
    Result<archive::Additions> additions = archive::decode_additions(rows->blob(0), places.size());
    REQUIRE(additions.ok());
    places.add(*additions);
    Result<archive::Minute> minute = archive::decode_minute(rows->blob(1), places);
    REQUIRE(minute.ok());
    all.push_back({std::move(*additions), std::move(*minute)});
  }
}

}  // namespace

TEST_CASE("each sealed minute is written once, with what it refers to") {
  TestStore test;
  HistoryInFolder on_disk(test);
  for (int minute = 0; minute < 5; ++minute) {
    test.add({code(1), code(2)});
    test.pass_minutes(1);
    on_disk.history.write();
  }
  const std::vector<Written> written = read(on_disk.folder.path("history/history-00000001.db"));
  REQUIRE(written.size() == on_disk.history.state().archive.minutes);
  REQUIRE(written.size() >= 3);
  CHECK_FALSE(on_disk.history.state().problem);
  CHECK(written[0].additions.modules ==
        std::vector{archive::Module{archive::ModuleKind::kFile, "/usr/bin/program", {}}});
  CHECK(written[0].additions.stacks.size() == 2);
  CHECK(written[1].additions.stacks.empty());
  for (std::size_t i = 0; i < written.size(); ++i) {
    CHECK(written[i].minute.sequence == i + 1);
    CHECK(written[i].minute.quality.whole == 1);
    CHECK(written[i].minute.cpus == 4);
    CHECK(written[i].minute.cpu_ns_accounted ==
          static_cast<std::uint64_t>(written[i].minute.end.ns - written[i].minute.start.ns));
  }
}

TEST_CASE("at the end the open minute is written as far as it is") {
  TestStore test;
  HistoryInFolder on_disk(test);
  std::jthread thread = start_thread("history", [&](const std::stop_token& stop) { on_disk.history.run(stop); });
  test.add({code(1)});
  test.pass(10);
  test.store.finish(test.clock.monotonic());
  thread.request_stop();
  thread.join();
  const std::vector<Written> written = read(on_disk.folder.path("history/history-00000001.db"));
  REQUIRE(written.size() == 1);
  CHECK(written[0].minute.end == test.clock.monotonic());
  CHECK(written[0].minute.pairs.size() == 1);
}

TEST_CASE("a minute that is not over is written as it is so far, and replaced once it is over") {
  TestStore test;
  HistoryInFolder on_disk(test);
  const std::string file = on_disk.folder.path("history/history-00000001.db");
  test.add({code(1), code(2)});
  test.pass(20);
  on_disk.history.write_so_far();
  test.add({code(1), code(3)});
  test.pass(15);
  on_disk.history.write_so_far();
  std::vector<Written> written = read(file);
  REQUIRE(written.size() == 1);
  CHECK(written[0].minute.end == test.clock.monotonic());
  CHECK(written[0].minute.pairs.size() == 2);
  CHECK(written[0].additions.stacks.size() == 3);
  CHECK(on_disk.history.state().archive.minutes == 0);

  test.add({code(1), code(4)});
  test.pass_minutes(1);
  on_disk.history.write();
  on_disk.history.write_so_far();  // nothing was sampled since
  test.add({code(1), code(3)});
  test.pass(20);
  on_disk.history.write_so_far();
  test.pass_minutes(1);
  on_disk.history.write();
  written = read(file);
  REQUIRE(written.size() == on_disk.history.state().archive.minutes);
  REQUIRE(written.size() == 2);
  CHECK(written[0].minute.pairs.size() == 3);
  CHECK(written[0].minute.end.ns - written[0].minute.start.ns == kNsPerMinute);
  CHECK(written[0].additions.stacks.size() == 4);
  CHECK(written[1].minute.pairs.size() == 1);
  CHECK(written[1].additions.stacks.empty());
  const Result<archive::Checked> checked = archive::check_history(on_disk.folder.path("history"));
  REQUIRE(checked.ok());
  CHECK(checked->problems.empty());
}

TEST_CASE("who has seen a minute as it was so far can read it while it is replaced") {
  TestStore test;
  HistoryInFolder on_disk(test);
  const std::string file = on_disk.folder.path("history/history-00000001.db");
  test.add({code(1)});
  test.pass(35);
  on_disk.history.write_so_far();
  Result<archive::PeriodReader> reader = archive::PeriodReader::open(file);
  REQUIRE(reader.ok());
  const auto rows = reader->minutes(0);
  REQUIRE(rows.ok());
  REQUIRE(rows->size() == 1);
  test.pass_minutes(1);
  on_disk.history.write();
  REQUIRE(on_disk.history.state().archive.minutes == 1);
  int blocks = 0;
  const auto count = [&](std::int64_t, std::span<const std::byte>) -> Status {
    ++blocks;
    return {};
  };
  CHECK(reader->pairs_of(rows->front().id, count).ok());
  CHECK(reader->for_each_additions(rows->front().session, 0, rows->front().id, count).ok());
  CHECK(blocks == 2);
  Result<archive::PeriodReader> later = archive::PeriodReader::open(file);
  REQUIRE(later.ok());
  CHECK(later->minutes(rows->front().id)->size() == 1);
}

TEST_CASE("a sealed minute that was not written comes before the one so far") {
  TestStore test;
  HistoryInFolder on_disk(test);
  test.add({code(1)});
  test.pass_minutes(1);
  test.pass(30);
  test.add({code(2)});
  on_disk.history.write_so_far();
  CHECK(read(on_disk.folder.path("history/history-00000001.db")).size() == 2);
}

TEST_CASE("a session ends with the single samples of its last ten minutes, also if another file follows") {
  TestStore test;
  HistoryInFolder on_disk(test);
  const auto sampled = [&](int file) {
    sqlite3* raw = nullptr;
    const std::string path = on_disk.folder.path("history/history-0000000" + std::to_string(file) + ".db");
    REQUIRE(sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
    const archive::Connection connection(raw);
    Result<archive::Statement> rows =
        archive::Statement::prepare(raw, "SELECT count(*), (SELECT max(id) FROM minute) - min(minute) FROM samples");
    REQUIRE(rows.ok());
    REQUIRE(rows->step().ok());
    return std::pair(rows->number(0), rows->number(1));
  };
  const auto pass = [&](int minutes) {
    for (int minute = 0; minute < minutes; ++minute) {
      test.add({code(static_cast<std::uint64_t>(minute))});
      test.pass_minutes(1);
      on_disk.history.write();
    }
  };
  pass(30);
  CHECK(sampled(1).first == 0);
  pass(6 * 60);
  CHECK(sampled(1) == std::pair<std::int64_t, std::int64_t>(10, 9));
  CHECK(sampled(2).first == 0);
  test.store.finish(test.clock.monotonic());
  on_disk.history.write();
  on_disk.history.end_session();
  // And those of the moment since the last full minute.
  CHECK(sampled(2) == std::pair<std::int64_t, std::int64_t>(11, 10));
}

TEST_CASE("the thread writes a minute as soon as it is sealed") {
  TestStore test;
  HistoryInFolder on_disk(test);
  const std::jthread thread = start_thread("history", [&](const std::stop_token& stop) { on_disk.history.run(stop); });
  test.add({code(1)});
  test.pass_minutes(3);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (on_disk.history.state().archive.minutes == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  CHECK(on_disk.history.state().archive.minutes > 0);
}

TEST_CASE("what could not be written is written later, as long as memory has it") {
  TestStore test({.retention_ns = 5 * kNsPerMinute});
  HistoryInFolder on_disk(test);
  const std::string folder = on_disk.folder.path("history");
  // A file in the place of the folder.
  const std::string blocker = on_disk.folder.write("history", "");
  const WallTime began = test.clock.wall();
  for (int minute = 0; minute < 3; ++minute) {
    test.add({code(1)});
    test.pass_minutes(1);
    on_disk.history.write();
  }
  const std::optional<History::State::Problem> problem = on_disk.history.state().problem;
  REQUIRE(problem);
  CHECK(problem->reason == "cannot open " + folder + ": Not a directory");
  CHECK(problem->since.ns == began.ns + 2 * kNsPerMinute);

  SECTION("before memory dropped anything") {
    std::filesystem::remove(blocker);
    on_disk.history.write();
    CHECK_FALSE(on_disk.history.state().problem);
    CHECK(on_disk.history.state().missed_minutes == 0);
    CHECK(read(folder + "/history-00000001.db").front().minute.sequence == 1);
  }
  SECTION("after memory dropped minutes, which are counted") {
    for (int minute = 0; minute < 20; ++minute) {
      test.pass_minutes(1);
      on_disk.history.write();
    }
    CHECK(on_disk.history.state().problem->since == problem->since);
    std::filesystem::remove(blocker);
    on_disk.history.write();
    const std::uint32_t first = read(folder + "/history-00000001.db").front().minute.sequence;
    CHECK(first > 10);
    CHECK(on_disk.history.state().missed_minutes == first - 1);
  }
}

}  // namespace flamed::daemon
