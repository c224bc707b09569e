// SPDX-License-Identifier: Apache-2.0
//
// The whole path on the running kernel: known programs are sampled, stored, named and queried.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/kernel/own_stacks.h"
#include "test/support/binomial_tolerance.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/support/stolen_time.h"

namespace flamed::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The row of a process in /processes; null if it is not listed.
nlohmann::json process_row(const RunningDaemon& daemon, pid_t pid) {
  const nlohmann::json answer = daemon.get_json("/processes");
  for (const auto& process : answer["processes"]) {
    if (process["pid"] == pid) return process;
  }
  return nlohmann::json::object();
}

/// A folder that is removed with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "flamed-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST_CASE("a known call chain is shown frame by frame, and a 2:1 split of the work as 2:1") {
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("known_chain")});
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), ";main;outer;middle;work_one;", 600);
  const std::uint64_t one = with(stacks, ";main;outer;middle;work_one;");
  const std::uint64_t two = with(stacks, ";main;outer;middle;work_two;");
  INFO("work_one " << one << ", work_two " << two << " of " << total(stacks));
  // The rest are the few instructions of the callers themselves and the program's start.
  CHECK(static_cast<double>(one + two) >= 0.95 * static_cast<double>(total(stacks)));
  const double n = static_cast<double>(one + two);
  CHECK(std::abs(static_cast<double>(two) - n * 2 / 3) <= binomial_tolerance(n, 2.0 / 3));
}

TEST_CASE("a program that lives in system calls shows the kernel's frames above its own") {
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("system_calls")});
  const std::string chain = std::string(";main;read_zeros;") + kSystemCall + ";" + kSystemCallCallee + ";";
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), chain, 200);
  const std::uint64_t in_kernel = with(stacks, chain);
  std::string listed;
  for (const auto& [stack, count] : stacks) listed += "\n  " + std::to_string(count) + "  " + stack;
  INFO(in_kernel << " of " << total(stacks) << listed);
  CHECK(static_cast<double>(in_kernel) >= 0.95 * static_cast<double>(total(stacks)));
  // The whole stack of most samples: the read of /dev/zero, down to the clearing of the memory.
  const std::uint64_t in_read = with(stacks, "vfs_read;read_iter_zero") + with(stacks, "vfs_read;read_zero");
#if defined(__aarch64__)
  // There the kernel's own walk lacks the caller of a leaf function, such as the one that clears the memory.
  CHECK(in_read + with(stacks, ";vfs_read;__arch_clear_user;") > in_kernel / 2);
#else
  CHECK(in_read > in_kernel / 2);
#endif
}

TEST_CASE("every sample of two busy threads is accounted for, and their sum is the kernel's CPU time") {
  const char* configured = std::getenv("FLAMED_ACCOUNTING_SECONDS");
  const std::string length = configured != nullptr ? configured : "20";
  RunningDaemon daemon;
  const double stolen_before = stolen_seconds();
  ChildProcess program({victim("two_threads"), length});
  const auto line = program.read_line(seconds(std::stol(length) * 4 + 30));
  REQUIRE(line.has_value());
  const double cpu_seconds = std::stod(*line) / 1e9;
  const double stolen = stolen_seconds() - stolen_before;
  const double expected = 99 * cpu_seconds;
  // The samples of the last second may not have arrived yet.
  static_cast<void>(RunningDaemon::eventually(seconds(3), [&] {
    return static_cast<double>(total(daemon.folded(profile_of(program.pid())))) >= expected * 0.999;
  }));

  const double stored = static_cast<double>(total(daemon.folded(profile_of(program.pid()))));
  // A thread with a CPU to itself is met at every tick. If it shares the CPUs, that is chance.
  const double ticks = 99 * 2 * std::stod(length);
  const double share = std::min(1.0, expected / ticks);
  const double tolerance = 0.02 * expected + binomial_tolerance(ticks, share);
  INFO("stored " << stored << ", expected " << expected << " +- " << tolerance << " for " << cpu_seconds
                 << " s of CPU time; the hypervisor took " << stolen << " s");
  CHECK(stored >= expected - tolerance);
  CHECK(stored <= expected + tolerance + 99 * stolen);

  const RunningDaemon::End end = daemon.end();
  INFO("taken " << end.taken << " whole " << end.whole << " truncated " << end.truncated << " lost " << end.lost);
  CHECK(end.taken > 0);
  CHECK(end.taken == end.whole + end.truncated + end.lost);
  CHECK(end.lost == 0);
}

TEST_CASE("an answer has all samples of up to a second ago, however seldom they are drained") {
  RunningDaemon daemon;
  for (int round = 0; round < 2; ++round) {
    ChildProcess program({victim("known_chain"), "1000"});
    REQUIRE(program.wait(seconds(120)) == 0);
    std::this_thread::sleep_for(milliseconds(1050));
    const std::uint64_t at_once = total(daemon.folded(profile_of(program.pid())));
    std::this_thread::sleep_for(seconds(6));
    const std::uint64_t later = total(daemon.folded(profile_of(program.pid())));
    CHECK(at_once >= 50);
    CHECK(at_once == later);
  }
}

TEST_CASE("a process that has ended keeps its names, and is marked as ended") {
  RunningDaemon daemon;
  pid_t pid = 0;
  {
    ChildProcess program({victim("known_chain"), "1500"});
    pid = program.pid();
    REQUIRE(program.wait(seconds(120)) == 0);
  }
  REQUIRE(has_samples(daemon, pid, 100));
  const FoldedStacks stacks = settled_profile(daemon, pid);
  CHECK(static_cast<double>(with(stacks, ";main;outer;middle;")) >= 0.95 * static_cast<double>(total(stacks)));

  // The end is known after the next drain.
  nlohmann::json row;
  CHECK(RunningDaemon::eventually(seconds(5), [&] {
    row = process_row(daemon, pid);
    return row["ended"].is_string();
  }));
  CHECK(row["comm"] == "victim_known_ch");
}

TEST_CASE("a program whose file was deleted, or replaced by another, while it ran keeps its own names") {
  const bool replaced = GENERATE(false, true);
  INFO((replaced ? "replaced" : "deleted"));
  const RunningDaemon& daemon = frequent_daemon();
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "program").string();
  std::filesystem::copy_file(victim("known_chain"), file);
  ChildProcess program({file});
  std::filesystem::remove(file);
  if (replaced) std::filesystem::copy_file(victim("system_calls"), file);

  // Samples of its start, from before main(), do not count.
  static_cast<void>(profile_once_seen(daemon, program.pid(), ";main;outer;middle;", 1));
  const std::string since = since_now();
  REQUIRE(has_samples(daemon, program.pid(), 100, since));
  program.kill();
  const FoldedStacks stacks = settled_profile(daemon, program.pid(), since);
  CHECK(static_cast<double>(with(stacks, ";main;outer;middle;")) >= 0.95 * static_cast<double>(total(stacks)));
  CHECK(with(stacks, "read_zeros") == 0);
}

TEST_CASE("a thousand processes of 20 ms each are attributed to their program") {
  constexpr int kProcesses = 1000;
  RunningDaemon daemon;
  const auto start = std::chrono::system_clock::now();
  const std::string from = std::to_string(std::chrono::duration_cast<milliseconds>(start.time_since_epoch()).count());
  std::vector<pid_t> pids;
  for (int i = 0; i < kProcesses; i += 2) {
    ChildProcess first({victim("short_lived")});
    ChildProcess second({victim("short_lived")});
    REQUIRE(first.wait(seconds(60)) == 0);
    REQUIRE(second.wait(seconds(60)) == 0);
    pids.push_back(first.pid());
    pids.push_back(second.pid());
  }
  std::this_thread::sleep_for(seconds(3));  // two drains: there is nothing to poll for, since most samples came long
                                            // ago

  // Each has two samples on average. The whole machine's profile names each process at its first level.
  const auto stacks = daemon.folded("/profile?format=folded&from=" + from);
  std::map<std::string, std::uint64_t> theirs;
  for (const auto& [stack, count] : stacks) {
    if (stack.rfind("victim_short_li (", 0) == 0) theirs[stack] = count;
  }
  const double samples = static_cast<double>(total(theirs));
  const double named = static_cast<double>(with(theirs, ";main;short_lived_work;"));
  INFO(samples << " samples, " << named << " in the work");
  // A virtual machine's neighbours take time in which no timer ticks, but which the kernel charges to the process.
  CHECK(samples >= 0.85 * 99 * 0.020 * kProcesses);
  // A process of 20 ms also spends some of its time in exec, in its start and in its exit.
  CHECK(named >= 0.90 * samples);

  // None may appear under another name, except under its parent's before its exec.
  std::size_t mistaken = 0;
  std::sort(pids.begin(), pids.end());
  const nlohmann::json answer = daemon.get_json("/processes?from=" + from);
  for (const auto& process : answer["processes"]) {
    const bool ours = std::binary_search(pids.begin(), pids.end(), process["pid"].get<pid_t>());
    if (ours && process["comm"] != "victim_short_li") ++mistaken;
  }
  CHECK(mistaken == 0);
}

TEST_CASE("a recursion of a thousand calls is shown call by call") {
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("deep"), "999"});
  const std::string whole = ";main;" + repeated("descend", 1000) + ";bottom;";
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), whole, 100);
  const auto n = static_cast<double>(total(stacks));
  CHECK(static_cast<double>(with(stacks, whole)) >= 0.95 * n - binomial_tolerance(n, 0.95));
  CHECK(with(stacks, "[truncated: deeper than a sample can hold]") == 0);
}

TEST_CASE("a stack deeper than a record keeps its innermost frames and is marked") {
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("deep"), "1100"});
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), ";descend;descend;bottom;", 100);
  const std::uint64_t marked = with(stacks, ";descend;descend;bottom;");
  const auto n = static_cast<double>(total(stacks));
  // Sometimes a sample is on the way to the bottom: very rarely, but more often on an emulator, which interrupts
  // between blocks of code.
  CHECK(static_cast<double>(marked) >= 0.95 * n - binomial_tolerance(n, 0.95));
  const auto profile = daemon.get_json("/profile?pid=" + std::to_string(program.pid()));
  CHECK(profile["quality"]["truncated"]["depth_limit"].get<double>() >= 0.95 * n);
}

TEST_CASE("SIGTERM ends the daemon within a second, with everything counted") {
  // On a busy machine the daemon may wait for the CPU once, but not each time.
  const milliseconds limit = seconds(1) * patience();
  auto shortest = milliseconds::max();
  for (int i = 0; i < 5 && shortest > limit; ++i) {
    RunningDaemon daemon;
    const RunningDaemon::End end = daemon.end();
    CHECK(end.exit_code == 0);
    CHECK(end.taken == end.whole + end.truncated + end.lost);
    shortest = std::min(shortest, end.took);
  }
  CHECK(shortest <= limit);
}

TEST_CASE("bad requests are answered as documented, and sampling goes on") {
  struct Case {
    HttpQuestion question;
    int status;
    std::string mentions;
  };
  const std::string long_query = "/profile?pid=1&from=" + std::string(9000, '1');
  const std::vector<Case> cases = {
      {{"GET", "/profile?pid=abc", {}, ""}, 400, "pid"},
      {{"GET", "/profile?pid=-1", {}, ""}, 400, "pid"},
      {{"GET", "/profile?from=1&from=2", {}, ""}, 400, "from"},
      {{"GET", "/profile?from=yesterdayish", {}, ""}, 400, "from"},
      {{"GET", "/profile?from=now&to=now-15m", {}, ""}, 400, "from"},
      {{"GET", "/profile?format=svg", {}, ""}, 400, "format"},
      {{"GET", "/profile?colour=red", {}, ""}, 400, "colour"},
      {{"GET", "/profile?pid=4194303", {}, ""}, 404, "4194303"},
      {{"GET", "/nothing", {}, ""}, 404, ""},
      {{"POST", "/profile", {}, ""}, 405, ""},
      {{"DELETE", "/profile", {}, ""}, 405, ""},
      {{"GET", "/profile?pid=1", {}, "body"}, 413, ""},
      {{"GET", long_query, {}, ""}, 414, ""},
      {{"GET", "/profile", {{"X-Large", std::string(20000, 'x')}}, ""}, 431, ""},
  };
  RunningDaemon daemon;
  const double before = daemon.metrics()["flamed_samples_taken_total"];
  for (const Case& bad : cases) {
    INFO(bad.question.method << " " << bad.question.target.substr(0, 60));
    const HttpAnswer answer = daemon.send(bad.question);
    CHECK(answer.status == bad.status);
    CHECK(answer.content_type.find("application/problem+json") == 0);
    const auto problem = nlohmann::json::parse(answer.body, nullptr, false);
    REQUIRE_FALSE(problem.is_discarded());
    CHECK(problem["status"] == bad.status);
    CHECK_FALSE(problem["detail"].get<std::string>().empty());
    CHECK(problem.dump().find(bad.mentions) != std::string::npos);
  }
  CHECK(daemon.get("/healthz").status == 200);
  ChildProcess program({victim("known_chain")});
  CHECK(has_samples(daemon, program.pid(), 50));
  CHECK(daemon.metrics()["flamed_samples_taken_total"] > before);
}

TEST_CASE("a process that never was on a CPU gives an empty answer with a warning, not an error") {
  RunningDaemon daemon;
  nlohmann::json profile;
  for (int attempt = 0; attempt < 10; ++attempt) {
    ChildProcess sleeper({"sleep", "1000"});
    const auto answer = daemon.get("/profile?from=now-1s&pid=" + std::to_string(sleeper.pid()));
    REQUIRE(answer.status == 200);
    profile = nlohmann::json::parse(answer.body);
    if (profile["value"] == 0) break;  // otherwise it was sampled in its start
  }
  CHECK(profile["value"] == 0);
  CHECK_FALSE(profile["warnings"].empty());
}

}  // namespace
}  // namespace flamed::test
