// SPDX-License-Identifier: Apache-2.0
//
// The process that reads other users' files: its rights, that its death does no harm, and that it leaves nothing
// behind. FLAMED_CHURN_SECONDS makes the killing longer than the usual 5 s.
#include <linux/landlock.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int kill_seconds() {
  const char* configured = std::getenv("FLAMED_CHURN_SECONDS");
  return configured == nullptr ? 5 : std::atoi(configured);
}

/// In all its threads.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream file(task.path() / "children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

/// The spawner, and its children.
std::vector<pid_t> worker_processes(pid_t daemon) {
  std::vector<pid_t> all = children_of(daemon);
  for (const pid_t spawner : std::vector<pid_t>(all)) {
    const std::vector<pid_t> children = children_of(spawner);
    all.insert(all.end(), children.begin(), children.end());
  }
  return all;
}

bool exists(pid_t pid) { return std::filesystem::exists("/proc/" + std::to_string(pid)); }

std::map<std::string, std::string> status_of(pid_t pid) {
  std::map<std::string, std::string> lines;
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    lines[line.substr(0, colon)] = value == std::string::npos ? "" : line.substr(value);
  }
  return lines;
}

/// Without the helper that opens files.
std::vector<pid_t> spawners_of(pid_t daemon) {
  std::vector<pid_t> all = children_of(daemon);
  std::erase_if(all, [](pid_t pid) { return status_of(pid)["Name"] != "elf-worker"; });
  return all;
}

/// The status in /healthz on a kernel before 5.13, which has no Landlock, or with Landlock off.
std::string without_landlock() {
  if (::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 0) return "";
  return std::string("; but without Landlock (") + std::strerror(errno) + ")";
}

/// In the C library only exported functions have names, unless its debug package is installed.
bool is_named(const std::string& stack) {
  static const std::regex nameless(R"(\[unknown\](?! \((libc\.so|ld-linux)))");
  return !std::regex_search(stack, nameless);
}

std::uint64_t with_names(const FoldedStacks& stacks) { return count_if(stacks, is_named); }

/// Copies of a program, each a new file to the daemon.
class NewFiles {
 public:
  NewFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "flamed-worker-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
  }
  ~NewFiles() { std::filesystem::remove_all(folder_); }
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  std::string next() {
    const std::filesystem::path file = folder_ / ("program_" + std::to_string(count_++));
    std::filesystem::copy_file(victim("known_chain"), file);
    return file.string();
  }

 private:
  std::filesystem::path folder_;
  unsigned count_ = 0;
};

TEST_CASE("the worker has no capabilities, a filter of system calls, a user that is not root, and one descriptor") {
  RunningDaemon daemon;
  const std::vector<pid_t> workers = spawners_of(daemon.process().pid());
  REQUIRE(workers.size() == 1);
  auto status = status_of(workers.front());
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    INFO(set);
    CHECK(status[set] == "0000000000000000");
  }
  CHECK(status["NoNewPrivs"] == "1");
  CHECK(status["Seccomp"] == "2");
  CHECK(status["Uid"].rfind("0\t", 0) != 0);
  CHECK(status["Groups"].empty());
  const std::string proc = "/proc/" + std::to_string(workers.front());
  // During a request there is also the pipe by which the spawner reports the child's end.
  std::vector<std::string> open;
  CHECK(RunningDaemon::eventually(seconds(30) * patience(), [&] {
    open.clear();
    for (const auto& entry : std::filesystem::directory_iterator(proc + "/fd")) {
      std::error_code closed;
      open.push_back(std::filesystem::read_symlink(entry, closed).string());
    }
    return open.size() == 1;
  }));
  CHECK(open.front().rfind("socket:", 0) == 0);

  const std::string health = daemon.get("/healthz").body;
  INFO(health);
  CHECK(health.find("system calls filtered)" + without_landlock() + "\"") != std::string::npos);
}

TEST_CASE("the worker can be killed ten times a second: sampling goes on, and later queries are answered right") {
  RunningDaemon daemon;
  NewFiles files;
  ChildProcess load({victim("known_chain")});
  REQUIRE(has_samples(daemon, load.pid(), 50));

  std::atomic<bool> stop = false;
  std::atomic<unsigned> killed = 0;
  std::jthread killer([&] {
    while (!stop) {
      for (const pid_t pid : worker_processes(daemon.process().pid())) killed += ::kill(pid, SIGKILL) == 0 ? 1U : 0U;
      std::this_thread::sleep_for(milliseconds(100));
    }
  });
  unsigned asked = 0;
  unsigned answered = 0;
  std::vector<pid_t> programs;
  const double taken_before = daemon.metrics()["flamed_samples_taken_total"];
  const auto start = std::chrono::steady_clock::now();
  const auto end = start + seconds(kill_seconds());
  while (std::chrono::steady_clock::now() < end) {
    ChildProcess program({files.next(), "200"});
    programs.push_back(program.pid());
    static_cast<void>(program.wait(seconds(20)));
    ++asked;
    if (daemon.get("/profile?format=folded").status == 200) ++answered;
  }
  const double taken = daemon.metrics()["flamed_samples_taken_total"] - taken_before;
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  stop = true;
  killer.join();
  CHECK(answered == asked);
  CHECK(killed >= static_cast<unsigned>(kill_seconds()));
  // One CPU at least is always busy, at 99 Hz.
  CHECK(taken > 80.0 * took);
  CHECK(daemon.get("/healthz").status == 200);

  programs.push_back(load.pid());
  for (const pid_t program : programs) {
    // Every frame has its name, except in a program that is just being loaded. A sample of a program with tables has
    // its whole stack. A program that ended while the worker was being killed may never have had tables.
    FoldedStacks stacks;
    const auto is_right = [&] {
      stacks = daemon.folded(profile_of(program));
      const FoldedStacks settled = settled_profile(daemon, program);
      const std::uint64_t in_chain = with(settled, ";main;outer;middle;work_");
      const std::uint64_t nameless = total(stacks) - with_names(stacks);
      return total(stacks) > 0 && nameless <= with(stacks, "execve") && (in_chain > 0 || program != load.pid()) &&
             in_chain == with(settled, ";work_");
    };
    const bool right = RunningDaemon::eventually(seconds(60), is_right);
    for (const auto& [stack, count] : stacks) {
      if (!right) UNSCOPED_INFO(count << "  " << stack);
    }
    CHECK(right);
  }
  auto metrics = daemon.metrics();
  WARN(killed << " processes killed in " << took << " s, " << metrics["flamed_worker_restarts_total"] << " restarts, "
              << asked << " questions, " << programs.size() << " programs, taken " << taken);
  CHECK(metrics["flamed_samples_lost_total"] == 0);

  const RunningDaemon::End ended = daemon.end();
  CHECK(ended.exit_code == 0);
  CHECK(ended.lost == 0);
  CHECK(ended.taken == ended.whole + ended.truncated + ended.lost);
}

TEST_CASE("no process of the worker outlives the daemon, however that ends") {
  for (const int signal : {SIGTERM, SIGKILL}) {
    RunningDaemon daemon;
    const std::vector<pid_t> workers = worker_processes(daemon.process().pid());
    REQUIRE_FALSE(workers.empty());
    daemon.process().signal(signal);
    REQUIRE(daemon.process().wait(seconds(5) * patience()).has_value());
    for (const pid_t pid : workers) {
      // After SIGKILL init or a subreaper reaps it: a zombie does not count as a process.
      CHECK(RunningDaemon::eventually(seconds(2) * patience(),
                                      [&] { return !exists(pid) || status_of(pid)["State"][0] == 'Z'; }));
    }
  }
}

}  // namespace
}  // namespace flamed::test
