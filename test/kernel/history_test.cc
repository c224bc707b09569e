// SPDX-License-Identifier: Apache-2.0
//
// Minutes on disk, written by the real daemon.
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "archive/files/sqlite.h"
#include "archive/reading/check.h"
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

/// Runs flamed until it ends. Returns its exit code and what it printed.
struct Ended {
  int exit_code = -1;
  std::string words;
};
Ended run_flamed(std::vector<std::string> arguments) {
  const char* binary = std::getenv("FLAMED_BINARY");
  REQUIRE(binary != nullptr);
  arguments.insert(arguments.begin(), binary);
  ChildProcess process(arguments, ChildProcess::Capture::kOutputAndErrors);
  Ended ended;
  while (const auto line = process.read_line(seconds(60))) ended.words += *line + "\n";
  ended.exit_code = process.wait(seconds(10)).value_or(-1);
  return ended;
}

/// The status of the answer to a user without rights.
std::string status_for(const char* user, const RunningDaemon& daemon, const std::string& target) {
  ChildProcess curl({"setpriv", std::string("--reuid=") + user, std::string("--regid=") + user, "--clear-groups",
                     "curl", "--silent", "--max-time", "20", "--output", "/dev/null", "--write-out", "%{http_code}\\n",
                     "http://127.0.0.1:" + std::to_string(daemon.port()) + target});
  return curl.read_line(seconds(30)).value_or("none");
}

std::string line_of_status(pid_t pid, std::string_view key) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return line.substr(key.size());
  }
  return {};
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
  // Without what this daemon has sampled itself by now.
  const std::string end_ms = std::to_string(number_in(file, "SELECT max(wall_end_ns) / 1000000 FROM minute"));
  const std::map<std::string, std::uint64_t> stacks =
      daemon.folded("/profile?format=folded&from=now-1h&to=" + end_ms + "&pid=" + std::to_string(busy.pid()));
  std::uint64_t samples = 0;
  for (const auto& [stack, count] : stacks) samples += count;
  CHECK(samples > 0);
  CHECK(number_in(file, "SELECT sum(samples) FROM minute") >= samples);
  CHECK(daemon.end().exit_code == 0);
}

TEST_CASE("SIGKILL at any moment costs a minute at most, and nothing that was written is damaged") {
  // FLAMED_KILLS=200 takes half an hour.
  const char* asked = std::getenv("FLAMED_KILLS");
  const int kills = asked == nullptr ? 4 : std::atoi(asked);
  constexpr int kAtOnce = 8;
  constexpr std::int64_t kMostNs = 60'000'000'000;
  const auto now_ns = [] {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  std::mt19937 random(std::random_device{}());
  const ChildProcess busy({victim("known_chain")});
  const TemporaryDirectory folder;
  std::vector<double> lost_seconds;
  while (static_cast<int>(lost_seconds.size()) < kills) {
    struct Run {
      std::string history;
      std::unique_ptr<RunningDaemon> daemon;
      std::int64_t began_ns = 0;
      std::chrono::steady_clock::time_point ends;
    };
    std::vector<Run> runs(static_cast<std::size_t>(std::min(kAtOnce, kills - static_cast<int>(lost_seconds.size()))));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Run& run = runs[i];
      run.history = folder.path("history-" + std::to_string(i));
      // Several of them must not slow each other down.
      run.daemon = std::make_unique<RunningDaemon>(
          std::vector<std::string>{"--history", run.history, "--frequency", "19", "--unwind", "frame-pointers"});
      run.began_ns = now_ns();
      run.ends = std::chrono::steady_clock::now() + std::chrono::milliseconds(40'000 + random() % 80'000);
    }
    std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.ends < b.ends; });
    for (Run& run : runs) {
      std::this_thread::sleep_until(run.ends);
      const std::int64_t killed_ns = now_ns();
      run.daemon->process().kill();
      const Result<archive::Checked> checked = archive::check_history(run.history);
      REQUIRE(checked.ok());
      INFO((checked->problems.empty() ? std::string() : checked->problems.front()));
      CHECK(checked->problems.empty());
      const auto until_ns = static_cast<std::int64_t>(
          number_in(run.history + "/history-00000001.db", "SELECT ifnull(max(wall_end_ns), 0) FROM minute"));
      const std::int64_t lost_ns = killed_ns - std::max(until_ns, run.began_ns);
      CHECK(lost_ns <= kMostNs);
      lost_seconds.push_back(static_cast<double>(lost_ns) / 1e9);
    }
  }
  std::sort(lost_seconds.begin(), lost_seconds.end());
  std::printf("%zu kills: median %.1f s, at most %.1f s not on disk\n", lost_seconds.size(),
              lost_seconds[lost_seconds.size() / 2], lost_seconds.back());
}

TEST_CASE("a stretch is exported while the daemon runs, and --open answers from it as the daemon does") {
  const TemporaryDirectory folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms{0755});
  const ChildProcess busy({victim("known_chain")});
  const std::string history = folder.path("history");
  {
    RunningDaemon daemon({"--history", history});
    await_samples(daemon);
    CHECK(daemon.end().exit_code == 0);
  }
  const std::string database = history + "/history-00000001.db";
  const std::string from = std::to_string(number_in(database, "SELECT min(wall_start_ns) / 1000000 FROM minute"));
  const std::string to = std::to_string(number_in(database, "SELECT max(wall_end_ns) / 1000000 + 1 FROM minute"));
  const std::string window = "from=" + from + "&to=" + to;
  // The daemon names this boot's kernel and vdso anew: a file has only the names that were known in time.
  const std::string user = "/profile?side=user&ignore=vdso%7Cclock_get%7Cgettimeofday%7Cgetcpu&" + window;
  const std::vector<std::string> questions{user + "&format=folded&group=thread",
                                           user + "&format=folded&lines=1&names=full&pid=" + std::to_string(busy.pid()),
                                           user + "&format=top-text"};
  const std::string file = folder.path("file.db");
  std::vector<std::string> expected;
  std::uint64_t samples = 0;
  {
    RunningDaemon daemon({"--history", history});
    for (const std::string& question : questions) expected.push_back(daemon.get(question).body);
    samples = daemon.get_json("/profile?" + window)["samples"];
    const Ended exported = run_flamed({"--export", from, to, file, "--history", history});
    INFO(exported.words);
    CHECK(exported.exit_code == 0);
    CHECK(daemon.end().exit_code == 0);
  }
  const Ended again = run_flamed({"--export", from, to, file, "--history", history});
  CHECK(again.exit_code == 2);
  CHECK(again.words.find("exists, and is not overwritten") != std::string::npos);

  for (const char* owner : {"0", "12345"}) {
    CAPTURE(owner);
    REQUIRE(::chown(file.c_str(), static_cast<uid_t>(std::stoul(owner)), static_cast<gid_t>(-1)) == 0);
    const std::string id = owner;
    RunningDaemon opened({"--open", file}, {"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups"});
    for (std::size_t i = 0; i < questions.size(); ++i) {
      INFO(questions[i]);
      CHECK(opened.get(questions[i]).body == expected[i]);
    }
    CHECK(opened.get_json("/profile?" + window)["samples"] == samples);
    const nlohmann::json health = opened.get_json("/healthz");
    CHECK(health["file"]["name"] == "file.db");
    CHECK(health["file"]["host"].get<std::string>().size() > 1);
    CHECK(std::to_string(health["file"]["window"]["from_ms"].get<std::uint64_t>()) == from);
    // The default window ends with the file.
    CHECK(opened.get_json("/profile")["samples"].get<std::uint64_t>() > 0);
    CHECK(opened.get("/debug/pprof/profile").status == 400);
    CHECK(status_for("12345", opened, "/profile") == (id == "0" ? "403" : "200"));
    CHECK(status_for("12346", opened, "/profile") == "403");
    CHECK(status_for("12346", opened, "/healthz") == "200");
    const pid_t pid = opened.process().pid();
    CHECK(line_of_status(pid, "CapPrm:") == "\t0000000000000000");
    CHECK(line_of_status(pid, "NoNewPrivs:") == "\t1");
    CHECK(line_of_status(pid, "Uid:").find("\t0\t") == std::string::npos);
    opened.process().signal(SIGTERM);
    CHECK(opened.process().wait(seconds(20)) == 0);
  }
}

TEST_CASE("files that are no history, or that a daemon writes, are not opened, and flamed says why") {
  const TemporaryDirectory folder;
  const std::string text = folder.write("text", std::string(5000, 'a'));
  const Ended foreign = run_flamed({"--open", text});
  CHECK(foreign.exit_code == 2);
  CHECK(foreign.words.find("cannot show " + text + ": ") != std::string::npos);
  const Ended missing = run_flamed({"--open", folder.path("missing")});
  CHECK(missing.exit_code == 2);
  CHECK(missing.words.find("No such file or directory") != std::string::npos);
  const std::string database = folder.write("written.db", "");
  folder.write("written.db-wal", "log");
  CHECK(run_flamed({"--open", database}).words.find("is being written") != std::string::npos);
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
