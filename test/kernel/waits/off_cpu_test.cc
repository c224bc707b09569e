// SPDX-License-Identifier: Apache-2.0
//
// The exact mode of waiting (/off_cpu): programs that wait in a known way (victims/waits.c), against the kernel's
// accounts of their threads.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "daemon/waits/off_cpu_capture.h"
#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using daemon::OffCpuCapture;
using std::chrono::seconds;

constexpr const char* kProgramName = "threads_switched";
constexpr std::int64_t kLengthNs = 2 * kNsPerSecond;

struct Account {
  double run_s = 0, queued_s = 0, runs = 0, read_s = 0;
};

/// What the kernel has counted, by tid.
std::map<std::uint32_t, Account> accounts_of(pid_t process) {
  std::map<std::uint32_t, Account> accounts;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream file(thread.path() / "schedstat");
    double run_ns = 0;
    double queued_ns = 0;
    double runs = 0;
    file >> run_ns >> queued_ns >> runs;
    const double read_s = static_cast<double>(SystemClock().monotonic().ns) / 1e9;
    accounts[static_cast<std::uint32_t>(std::stoul(thread.path().filename()))] = {run_ns / 1e9, queued_ns / 1e9, runs,
                                                                                  read_s};
  }
  return accounts;
}

/// Of the two seconds. The accounts are read a moment later, which is longer on a busy machine. A stay in a run queue
/// (`stay_s`, on average) is in the account only when it is over: at either end one may be missing, or two of different
/// lengths.
bool is_near(double found_s, double expected_s, double stay_s) {
  return std::abs(found_s - expected_s) < 0.05 * std::abs(expected_s) + 0.1 + 4 * stay_s;
}

TEST_CASE("each thread's time in waits and in run queues is what the kernel has counted") {
  const auto kind = GENERATE(as<std::string>{}, "sleeps", "mutex", "pipe", "starved", "fsync", "workers");
  INFO(kind);
  const SystemClock clock;
  OffCpuCapture capture(clock, nullptr, {[] {}, [] {}});
  ChildProcess program({victim("waits"), kind, "60"});
  // Until its threads do what they will do.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const WallTime asked = clock.wall();
  const Status begun = capture.begin({{program.pid()}, kLengthNs, asked, false});
  INFO((begun ? "" : begun.error().message()));
  REQUIRE(begun);
  const auto before = accounts_of(program.pid());
  std::this_thread::sleep_for(std::chrono::nanoseconds(kLengthNs));
  const auto after = accounts_of(program.pid());
  const auto outcome = capture.take_outcome(asked);
  REQUIRE(outcome);
  for (const std::string& warning : outcome->warnings) {
    INFO(warning);
    // On a slow machine: fewer stacks, but all times.
    CHECK(warning.starts_with("There were so many waits"));
  }
  std::map<std::uint32_t, std::pair<double, double>> found;  // blocked, queued
  for (const auto& time : outcome->times) {
    CHECK(time.tgid == static_cast<std::uint32_t>(program.pid()));
    found[time.tid].first += static_cast<double>(time.blocked_ns) / 1e9;
    found[time.tid].second += static_cast<double>(time.queued_ns) / 1e9;
  }
  const double length_s = static_cast<double>(outcome->ended.ns - outcome->began.ns) / 1e9;
  CHECK(before.size() == after.size());
  for (const auto& [tid, end] : after) {
    const Account& start = before.at(tid);
    const double scale = length_s / (end.read_s - start.read_s);
    const double queued_s = scale * (end.queued_s - start.queued_s);
    const double blocked_s = length_s - queued_s - scale * (end.run_s - start.run_s);
    const double stay_s = queued_s / std::max(end.runs - start.runs, 1.0);
    INFO("thread " << tid << ": blocked " << found[tid].first << " of " << blocked_s << " s, in run queues "
                   << found[tid].second << " of " << queued_s << " s");
    // CPU time begins when a thread is woken, if that makes its CPU switch to it, not when it gets there. With
    // thousands of wake-ups a second that is some tenths of a second more than the time between its switches: note 26.
    CHECK((is_near(found[tid].first, blocked_s, stay_s) || (kind == "fsync" && found[tid].first > blocked_s)));
    CHECK(found[tid].first + found[tid].second <= length_s + 0.1);
    CHECK(is_near(found[tid].second, queued_s, stay_s));
  }
}

/// Seconds by stack.
std::map<std::string, double> measure(const RunningDaemon& daemon, const ChildProcess& program,
                                      const std::string& how = "seconds=3") {
  std::map<std::string, double> stacks;
  for (const auto& [stack, units] :
       daemon.folded("/off_cpu?idle=show&format=folded&group=none&pid=" + std::to_string(program.pid()) + "&" + how)) {
    stacks[stack] = static_cast<double>(units) / 10'000;
  }
  return stacks;
}

double of(const std::map<std::string, double>& stacks, const std::string& part) {
  double sum = 0;
  for (const auto& [stack, of_stack] : stacks) {
    if ((stack + ";").find(part) != std::string::npos) sum += of_stack;
  }
  return sum;
}

std::string text_of(const std::map<std::string, double>& stacks) {
  std::string text;
  for (const auto& [stack, of_stack] : stacks) text += std::to_string(of_stack) + " s " + stack + "\n";
  return text;
}

TEST_CASE("the answer has why and in which functions threads waited, also those that never switched") {
  const RunningDaemon daemon;
  ChildProcess sleeps({victim("waits"), "sleeps", "60"});
  ChildProcess mutex({victim("waits"), "mutex", "60"});
  // The first stacks of a process come before flamed knows its mappings.
  const auto sleeping = measure(daemon, sleeps);
  const auto locking = measure(daemon, mutex);
  INFO(text_of(sleeping) << text_of(locking));
  const double slept = of(sleeping, ";sleeps;sleep_ms;");
  const double polled = of(sleeping, ";[poll];");
  // 3 and 7 ms, and what waking up takes.
  CHECK(slept > 0.2 * (slept + polled));
  CHECK(slept < 0.4 * (slept + polled));
  CHECK(of(sleeping, ";[sleep];") > 0);
  CHECK(of(sleeping, ";main;") > 2.7);  // joins the thread
  CHECK(of(locking, ";want;") > 0.8 * of(locking, ";[lock];"));
  CHECK(of(locking, ";[lock];") > 0.3 * 3 * 3);
  CHECK(of(locking, ";hold;sleep_ms;") > 0.5 * 3);
}

TEST_CASE("who ended a wait is told where it is asked for: another thread, or an interrupt") {
  const RunningDaemon daemon;
  ChildProcess pipe({victim("waits"), "pipe", "60"});
  ChildProcess sleeps({victim("waits"), "sleeps", "60"});
  const auto sent = measure(daemon, pipe, "seconds=1&wakers=show");
  const auto slept = measure(daemon, sleeps, "seconds=1&wakers=show");
  const auto without = measure(daemon, pipe, "seconds=1");
  INFO(text_of(sent) << text_of(slept) << text_of(without));
  std::map<std::string, double> by_reader;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pipe.pid()) + "/task")) {
    const std::string tid = thread.path().filename();
    by_reader[tid] = of(sent, ";[woken by victim_waits (" + tid + ")];[pipe];");
  }
  CHECK(by_reader.erase(std::to_string(pipe.pid())) == 1);  // the main thread only joins the others
  REQUIRE(by_reader.size() == 2);
  double woken = 0;
  for (const auto& [tid, seconds_by] : by_reader) {
    CHECK(seconds_by > 0);
    woken += seconds_by;
  }
  CHECK(woken > 0.8 * of(sent, ";[pipe];"));
  CHECK(of(slept, ";[woken by an interrupt];[sleep];") > 0.8 * of(slept, ";[sleep];"));
  CHECK(of(slept, ";[sleep];") > 0);
  CHECK(of(without, "[woken by ") == 0);
}

bool is_attached() {
  FILE* const list = ::popen("bpftool prog list 2>/dev/null || /usr/sbin/bpftool prog list", "r");
  REQUIRE(list != nullptr);
  std::string text;
  std::vector<char> part(4096);
  for (std::size_t got = 0; (got = ::fread(part.data(), 1, part.size(), list)) != 0;) text.append(part.data(), got);
  ::pclose(list);
  return text.find(kProgramName) != std::string::npos || text.find("thread_woken") != std::string::npos;
}

std::string health_of(const RunningDaemon& daemon) {
  const nlohmann::json health = daemon.get_json("/healthz");
  for (const auto& component : health["components"]) {
    if (component["name"] == "off_cpu") return component["detail"];
  }
  return "";
}

bool has_ended_children(pid_t process) {
  FILE* const list = ::popen(("ps --ppid " + std::to_string(process) + " -o stat=").c_str(), "r");
  REQUIRE(list != nullptr);
  std::vector<char> text(4096);
  const std::size_t got = ::fread(text.data(), 1, text.size(), list);
  ::pclose(list);
  return std::string(text.data(), got).find('Z') != std::string::npos;
}

TEST_CASE("the program at the switch is there only while somebody waits for the answer") {
  RunningDaemon daemon;
  ChildProcess program({victim("waits"), "sleeps", "60"});
  REQUIRE_FALSE(is_attached());
  const std::string query = "/off_cpu?seconds=30&pid=" + std::to_string(program.pid());
  {
    ChildProcess client({"/usr/bin/curl", "-s", "http://127.0.0.1:" + std::to_string(daemon.port()) + query});
    REQUIRE(RunningDaemon::eventually(seconds(20) * patience(), [&] {
      return health_of(daemon) == "waits of some processes are being measured exactly";
    }));
    CHECK(is_attached());
    // One at a time.
    CHECK(daemon.get(query).status == 409);
  }
  // It has gone.
  CHECK(RunningDaemon::eventually(seconds(20) * patience(), [&] {
    return health_of(daemon) == "waits are measured exactly when somebody asks (/off_cpu): now nobody does";
  }));
  CHECK(RunningDaemon::eventually(seconds(20) * patience(), [] { return !is_attached(); }));
  // Its helper has been reaped: zombies would use up the unit's TasksMax.
  CHECK(
      RunningDaemon::eventually(seconds(20) * patience(), [&] { return !has_ended_children(daemon.process().pid()); }));
  CHECK(daemon.get("/off_cpu?pid=1&seconds=0").status == 400);
  CHECK(daemon.get("/off_cpu").status == 400);
  CHECK(daemon.get("/off_cpu?pid=2147483647").status == 404);
}

}  // namespace
}  // namespace flamed::test
