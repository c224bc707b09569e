// SPDX-License-Identifier: Apache-2.0
//
// Faults around a running daemon. In each test every sample taken is accounted for: stored whole, stored truncated, or
// lost with a reason. FLAMED_FAULTS=long makes them as long as docs/reliability.md says; usually they take seconds.
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernel/accounts.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool long_form() {
  const char* form = std::getenv("FLAMED_FAULTS");
  return form != nullptr && std::string(form) == "long";
}

TEST_CASE("a stopped daemon knows how many samples it lost meanwhile, and when") {
  RunningDaemon daemon;
  const int stopped_s = long_form() ? 30 : 2;
  ChildProcess driver({victim("churn_driver"), std::to_string(stopped_s + 4), "2", "10", "60000", victim("churn_alpha"),
                       victim("churn_beta")});
  REQUIRE(RunningDaemon::eventually(seconds(10), [&] { return daemon.metrics()["flamed_samples_whole_total"] > 50; }));
  daemon.process().signal(SIGSTOP);
  ::sleep(static_cast<unsigned>(stopped_s));
  daemon.process().signal(SIGCONT);
  REQUIRE(RunningDaemon::eventually(seconds(15), [&] { return daemon.get("/healthz").status == 200; }));
  REQUIRE(driver.wait(seconds(30)) == 0);
  ::sleep(2);
  const double lost = daemon.metrics()["flamed_samples_lost_total"];
  const auto gaps = gaps_of(daemon, "samples_lost");
  CHECK(gaps.empty() == (lost == 0));
  double in_gaps = 0;
  for (const auto& gap : gaps) in_gaps += gap["lost_samples"].get<double>();
  CHECK(in_gaps == lost);
  check_every_sample_is_counted(daemon);
}

TEST_CASE("samples beyond a ring's size while the daemon is stopped are lost, and counted as lost") {
  RunningDaemon daemon({"--frequency", "999", "--cpu-budget", "off"});
  ChildProcess deep({victim("chains"), "recursion", "119"});
  REQUIRE(RunningDaemon::eventually(seconds(20), [&] { return total(daemon.folded(profile_of(deep.pid()))) > 500; }));
  daemon.process().signal(SIGSTOP);
  ::sleep(2);
  daemon.process().signal(SIGCONT);
  REQUIRE(RunningDaemon::eventually(seconds(15), [&] { return daemon.metrics()["flamed_samples_lost_total"] > 0; }));
  CHECK(daemon.get("/metrics").body.find("flamed_samples_lost_total{reason=\"ring_full\"} 0\n") == std::string::npos);
  ::sleep(2);  // the first drains may be late, too
  double in_gaps = 0;
  for (const auto& gap : gaps_of(daemon, "samples_lost")) in_gaps += gap["lost_samples"].get<double>();
  CHECK(in_gaps == daemon.metrics()["flamed_samples_lost_total"]);
  check_every_sample_is_counted(daemon);
}

TEST_CASE("a ring that fills wakes the daemon in time") {
  RunningDaemon daemon({"--frequency", "499", "--cpu-budget", "off"});
  ChildProcess deep({victim("chains"), "recursion", "119"});
  REQUIRE(RunningDaemon::eventually(seconds(20), [&] { return total(daemon.folded(profile_of(deep.pid()))) > 500; }));
  // The ring holds a second of such samples. There are no queries, so only the ring triggers drains.
  ::sleep(5);
  CHECK(daemon.metrics()["flamed_samples_lost_total"] == 0);
  CHECK(total(daemon.folded(profile_of(deep.pid()))) > 2000);
  check_every_sample_is_counted(daemon);
}

TEST_CASE("thousands of threads are sampled, each under its own id") {
  RunningDaemon daemon;
  const std::string threads = long_form() ? "10000" : "1000";
  ChildProcess program({victim("churn_threads"), "4", threads});
  // Also the samples before the program's unwind rows, which may be late beside a thousand threads.
  REQUIRE(
      RunningDaemon::eventually(seconds(60), [&] { return total(daemon.folded(profile_of(program.pid()))) >= 50; }));
  REQUIRE(program.wait(seconds(300)) == 0);
  const auto listed = daemon.get_json("/threads?from=now-5m")["threads"];
  CHECK(listed.size() > 10);
  check_every_sample_is_counted(daemon);
}

TEST_CASE("a daemon that is killed again and again leaves nothing behind, and the next one samples at once") {
  const int times = long_form() ? 100 : 3;
  const auto flameds = [] {
    std::ptrdiff_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "environ", std::ios::binary);
      std::stringstream text;
      text << file.rdbuf();
      if (text.str().find("FLAMED_KILLED=" + std::to_string(::getpid())) != std::string::npos) ++count;
    }
    return count;
  };
  ::setenv("FLAMED_KILLED", std::to_string(::getpid()).c_str(), 1);
  milliseconds slowest{};
  for (int i = 0; i < times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    RunningDaemon daemon;
    REQUIRE(RunningDaemon::eventually(seconds(10), [&] { return daemon.metrics()["flamed_samples_whole_total"] > 0; }));
    slowest = std::max(slowest, std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start));
    daemon.process().kill();
  }
  ::unsetenv("FLAMED_KILLED");
  CHECK(RunningDaemon::eventually(seconds(10), [&] { return flameds() == 0; }));
  WARN(times << " times; from the start to the first stored sample it took at most " << slowest.count() << " ms");
  RunningDaemon last;
  ::sleep(2);
  check_every_sample_is_counted(last);
}

TEST_CASE("a log that can't be written does not keep it from sampling") {
  Wrapped wrapped("exec \"$FLAMED_WRAPPED\" \"$@\" 2>/dev/full");
  RunningDaemon daemon;
  ChildProcess program({victim("known_chain")});
  CHECK(has_samples(daemon, program.pid(), 100));
  daemon.process().signal(SIGHUP);
  CHECK(daemon.get("/healthz").status == 200);
  daemon.process().signal(SIGTERM);
  CHECK(daemon.process().wait(seconds(10)) == 0);
}

TEST_CASE("a bad configuration at SIGHUP changes nothing and is logged with its line, a good one sets the log level") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("flamed-hup-" + std::to_string(::getpid()));
  std::ofstream(file) << "{}\n";
  RunningDaemon daemon({"--config", file.string()});
  const auto told = [&](const std::string& words) {
    while (const auto line = daemon.process().read_line(seconds(5))) {
      if (line->find(words) != std::string::npos) return true;
    }
    return false;
  };
  std::ofstream(file) << "{\n  \"frequency\": 49\n}\n";
  daemon.process().signal(SIGHUP);
  CHECK(told("the configuration stays as it was: " + file.string() + ": line 2: unknown key 'frequency'"));
  std::ofstream(file) << "{ \"log_level\": \"debug\", \"frequency_hz\": 49 }\n";
  daemon.process().signal(SIGHUP);
  CHECK(told("log_level applied; frequency_hz at the next restart"));
  std::filesystem::remove(file);
  check_every_sample_is_counted(daemon);
}

/// A file system that does not answer, and a program that runs from it.
class HangingFileSystem {
 public:
  enum class Tmpdir : std::uint8_t { kThere, kLinkToThere };
  explicit HangingFileSystem(const char* program, Tmpdir tmpdir = Tmpdir::kThere, const std::string& other = "") {
    std::filesystem::create_directory(folder_);
    std::filesystem::create_directory_symlink(folder_, link_);
    ::setenv("TMPDIR", tmpdir == Tmpdir::kThere ? folder_.c_str() : link_.c_str(), 1);
    std::vector<std::string> arguments{victim("hanging_fuse"), folder_.string(), victim(program)};
    if (!other.empty()) arguments.push_back(other);
    server_.emplace(arguments, ChildProcess::Capture::kOutputAndErrors);
    ::unsetenv("TMPDIR");
    const auto line = server_->read_line(seconds(5));
    if (!line || line->find_first_not_of("0123456789") != std::string::npos)
      WARN("SKIP fuse: no FUSE here: " << line.value_or("nothing was said"));
    else
      pid_ = std::stoi(*line);
  }
  ~HangingFileSystem() {
    server_.reset();
    std::filesystem::remove(link_);
    std::filesystem::remove(folder_);
  }
  HangingFileSystem(const HangingFileSystem&) = delete;
  HangingFileSystem& operator=(const HangingFileSystem&) = delete;

  /// The pid of the program, whose TMPDIR is there, too. Empty if there is no FUSE.
  [[nodiscard]] std::optional<pid_t> pid() const { return pid_; }

 private:
  const std::filesystem::path folder_ = "/tmp/flamed-fuse-" + std::to_string(::getpid());
  const std::filesystem::path link_ = folder_.string() + "-link";
  std::optional<ChildProcess> server_;
  std::optional<pid_t> pid_;
};

void check_others_are_named_and_it_ends(RunningDaemon& daemon) {
  ChildProcess other({victim("known_chain")});
  REQUIRE(has_samples(daemon, other.pid(), 50));
  CHECK(RunningDaemon::eventually(seconds(15),
                                  [&] { return with(daemon.folded(profile_of(other.pid())), ";main;outer;") > 0; }));
  CHECK(daemon.get("/healthz").status == 200);
  const RunningDaemon::End end = daemon.end();
  CHECK(end.exit_code == 0);
  CHECK(end.took < seconds(3) * patience());
  CHECK(end.taken == end.whole + end.truncated + end.lost);
}

TEST_CASE("a file system that does not answer blocks neither the names of other programs nor the daemon's end") {
  const HangingFileSystem hanging("known_chain");
  if (!hanging.pid()) return;
  RunningDaemon daemon;
  // Its rows are never built, so none of its samples is settled.
  REQUIRE(
      RunningDaemon::eventually(seconds(60), [&] { return total(daemon.folded(profile_of(*hanging.pid()))) >= 100; }));
  CHECK(RunningDaemon::eventually(seconds(10), [&] { return daemon.metrics()["flamed_hung_file_systems"] == 1; }));
  check_others_are_named_and_it_ends(daemon);
}

TEST_CASE("a JIT compiler whose folder is on a file system that does not answer blocks no one either") {
  const HangingFileSystem hanging("jit");
  if (!hanging.pid()) return;
  // Without the map in /tmp flamed looks into the other folder.
  const std::filesystem::path map = "/tmp/perf-" + std::to_string(*hanging.pid()) + ".map";
  REQUIRE(RunningDaemon::eventually(seconds(10), [&] { return std::filesystem::remove(map); }));
  RunningDaemon daemon;
  REQUIRE(
      RunningDaemon::eventually(seconds(60), [&] { return total(daemon.folded(profile_of(*hanging.pid()))) >= 100; }));
  CHECK(with(daemon.folded(profile_of(*hanging.pid())), "[unknown] (anon") > 0);
  check_others_are_named_and_it_ends(daemon);
}

TEST_CASE("a JIT compiler's link into a file system that does not answer blocks no one either") {
  const HangingFileSystem hanging("jit", HangingFileSystem::Tmpdir::kLinkToThere);
  if (!hanging.pid()) return;
  const std::filesystem::path map = "/tmp/perf-" + std::to_string(*hanging.pid()) + ".map";
  REQUIRE(RunningDaemon::eventually(seconds(10), [&] { return std::filesystem::remove(map); }));
  RunningDaemon daemon;
  REQUIRE(
      RunningDaemon::eventually(seconds(60), [&] { return total(daemon.folded(profile_of(*hanging.pid()))) >= 100; }));
  // The program, and its user's links.
  CHECK(RunningDaemon::eventually(seconds(10), [&] { return daemon.metrics()["flamed_hung_file_systems"] == 2; }));
  check_others_are_named_and_it_ends(daemon);
}

/// The folder of debug files; created if it is missing, and removed again.
class DebugFolder {
 public:
  DebugFolder() : made_(std::filesystem::create_directories(path)) {}
  ~DebugFolder() {
    if (made_) std::filesystem::remove(path);
  }
  DebugFolder(const DebugFolder&) = delete;
  DebugFolder& operator=(const DebugFolder&) = delete;
  const std::string path = "/usr/lib/debug";

 private:
  const bool made_;
};

TEST_CASE("debug files on a file system that does not answer block neither the answer nor the daemon's end") {
  const DebugFolder debug;
  const HangingFileSystem hanging("known_chain", HangingFileSystem::Tmpdir::kThere, debug.path);
  if (!hanging.pid()) return;
  RunningDaemon daemon;
  REQUIRE(has_samples(daemon, *hanging.pid(), 100));
  CHECK(RunningDaemon::eventually(seconds(15),
                                  [&] { return with(daemon.folded(profile_of(*hanging.pid())), ";main;outer;") > 0; }));
  CHECK(daemon.metrics()["flamed_hung_file_systems"] >= 1);
  check_others_are_named_and_it_ends(daemon);
}

}  // namespace
}  // namespace flamed::test
