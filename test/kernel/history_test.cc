// SPDX-License-Identifier: Apache-2.0
//
// Minutes on disk, written by the real daemon.
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "archive/files/sqlite.h"
#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

nlohmann::json health_of(const RunningDaemon& daemon, std::string_view component) {
  const nlohmann::json health = daemon.get_json("/healthz");
  for (const nlohmann::json& one : health["components"]) {
    if (one["name"] == component) return one;
  }
  return {};
}

std::uint64_t number_in(const std::string& path, std::string_view sql) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK);
  const archive::Connection connection(raw);
  Result<archive::Statement> statement = archive::Statement::prepare(raw, sql);
  REQUIRE(statement.ok());
  const Result<bool> row = statement->step();
  REQUIRE(row.ok());
  REQUIRE(*row);
  return static_cast<std::uint64_t>(statement->number(0));
}

void await_samples(const RunningDaemon& daemon) {
  REQUIRE(RunningDaemon::eventually(seconds(60), [&] { return daemon.metrics()["flamed_samples_taken_total"] > 200; }));
}

}  // namespace

TEST_CASE("when the daemon is stopped, every sample is on disk, and the next one writes on in the same file") {
  const TemporaryDirectory folder;
  const ChildProcess busy({victim("known_chain")});
  std::uint64_t stored = 0;
  for (int run = 1; run <= 2; ++run) {
    RunningDaemon daemon({"--history", folder.path("history")});
    await_samples(daemon);
    CHECK(health_of(daemon, "history")["ok"] == true);
    CHECK(daemon.metrics()["flamed_history_failing"] == 0);
    const RunningDaemon::End end = daemon.end();
    CHECK(end.exit_code == 0);
    stored += end.whole + end.truncated;
    const std::string file = folder.path("history/history-00000001.db");
    CHECK(number_in(file, "SELECT sum(samples) FROM minute") == stored);
    CHECK(number_in(file, "SELECT count(*) FROM session WHERE length(boot_id) = 36") ==
          static_cast<std::uint64_t>(run));
    CHECK(number_in(file, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check != 'ok'") == 0);
  }
}

TEST_CASE(
    "after a restart the daemon answers with the samples, stacks and names from before, and says how long it was "
    "gone") {
  const TemporaryDirectory folder;
  const ChildProcess busy({victim("known_chain")});
  const std::string pid = std::to_string(busy.pid());
  std::uint64_t stored = 0;
  {
    RunningDaemon daemon({"--history", folder.path("history")});
    await_samples(daemon);
    const RunningDaemon::End end = daemon.end();
    stored = end.whole + end.truncated;
  }
  const std::uint64_t ended_ns =
      number_in(folder.path("history/history-00000001.db"), "SELECT max(wall_end_ns) FROM minute");
  const std::string until = "&to=" + std::to_string(ended_ns / 1'000'000'000 + 1);
  for (int run = 1; run <= 2; ++run) {
    RunningDaemon daemon({"--history", folder.path("history")});
    const nlohmann::json all = daemon.get_json("/profile?format=flamegraph&from=now-1h" + until);
    // What a later run has stored in the same minute is the window's as well.
    CHECK(all["value"].get<std::uint64_t>() >= stored);
    const std::map<std::string, std::uint64_t> stacks = daemon.folded("/profile?format=folded&from=now-1h&pid=" + pid);
    CHECK(std::any_of(stacks.begin(), stacks.end(),
                      [](const auto& stack) { return stack.first.find(";main;outer;middle;") != std::string::npos; }));
    const nlohmann::json gone = daemon.get_json("/profile?from=now-1h")["missing"];
    INFO(gone.dump());
    CHECK(std::any_of(gone.begin(), gone.end(),
                      [](const nlohmann::json& gap) { return gap["reason"] == "not_running"; }));
    CHECK(daemon.end().exit_code == 0);
  }
}

TEST_CASE("after SIGKILL the minutes that were complete are answered") {
  const TemporaryDirectory folder;
  const ChildProcess busy({victim("known_chain")});
  const std::string file = folder.path("history/history-00000001.db");
  {
    RunningDaemon daemon({"--history", folder.path("history")});
    REQUIRE(RunningDaemon::eventually(
        seconds(120), [&] { return daemon.metrics()["flamed_history_minutes_total"] >= 1; }, seconds(1)));
    daemon.process().kill();
  }
  RunningDaemon daemon({"--history", folder.path("history")});
  const std::map<std::string, std::uint64_t> stacks =
      daemon.folded("/profile?format=folded&from=now-1h&pid=" + std::to_string(busy.pid()));
  std::uint64_t samples = 0;
  for (const auto& [stack, count] : stacks) samples += count;
  CHECK(samples > 0);
  CHECK(number_in(file, "SELECT sum(samples) FROM minute") >= samples);
  CHECK(daemon.end().exit_code == 0);
}

TEST_CASE("without a place for history the daemon samples, and says what it can't do") {
  const TemporaryDirectory folder;
  const ChildProcess busy({victim("known_chain")});
  const std::string history = folder.path("missing/history");
  RunningDaemon daemon({"--history", history});
  await_samples(daemon);
  REQUIRE(RunningDaemon::eventually(
      seconds(90), [&] { return health_of(daemon, "history")["ok"] == false; }, seconds(1)));
  const std::string detail = health_of(daemon, "history")["detail"];
  INFO(detail);
  CHECK(detail.find("cannot create " + history + ": No such file or directory") != std::string::npos);
  CHECK(daemon.metrics()["flamed_history_failing"] == 1);
  CHECK(daemon.get("/healthz").status == 200);
  CHECK(daemon.end().exit_code == 0);
}

TEST_CASE("without --history nothing is written, and /healthz says so") {
  RunningDaemon daemon;
  CHECK(health_of(daemon, "history")["detail"].get<std::string>().find("memory alone") != std::string::npos);
  CHECK(daemon.end().exit_code == 0);
}

}  // namespace flamed::test
