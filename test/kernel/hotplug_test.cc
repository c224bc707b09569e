// SPDX-License-Identifier: Apache-2.0
//
// A CPU goes offline and comes back. The kernel lets the old event be enabled again, but takes no samples with it.
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

/// The machine's second CPU. The destructor brings it online again.
class SecondCpu {
 public:
  ~SecondCpu() { set_online(true); }
  static bool set_online(bool online) {
    std::ofstream file("/sys/devices/system/cpu/cpu1/online");
    file << (online ? "1" : "0") << std::flush;
    return file.good();
  }
};

/// The daemon's count of the second CPU's missing samples, for one reason.
std::vector<nlohmann::json> gaps(const RunningDaemon& daemon, const std::string& reason) {
  std::vector<nlohmann::json> found;
  const nlohmann::json answer = daemon.get_json("/timeline");
  for (const nlohmann::json& each : answer["missing"]) {
    if (each["reason"] == reason && each["cpu"] == 1) found.push_back(each);
  }
  return found;
}

/// The reported gap of the second CPU, for one reason.
nlohmann::json told_gap(const RunningDaemon& daemon, const std::string& reason) {
  nlohmann::json answer;
  nlohmann::json gap;
  const auto is_told = [&] {
    answer = daemon.get_json("/timeline");
    const std::vector<nlohmann::json> all = gaps(daemon, reason);
    if (!all.empty()) gap = all.back();
    return !gap.is_null();
  };
  REQUIRE(RunningDaemon::eventually(seconds(5) * patience(), is_told));
  WARN(reason << ": " << gap["to_ms"].get<double>() - gap["from_ms"].get<double>() << " ms");
  CHECK(answer["warnings"].dump().find("Time without samples") != std::string::npos);
  return gap;
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TEST_CASE("a CPU that was taken offline is sampled again when it is back") {
  SecondCpu restore;
  RunningDaemon daemon;
  const double before = daemon.metrics()["flamed_sampled_cpus"];
  if (before < 2 || !SecondCpu::set_online(false)) {
    WARN("SKIP hotplug: this machine has no second CPU that can be taken offline");
    return;
  }
  CHECK(RunningDaemon::eventually(seconds(5), [&] { return daemon.metrics()["flamed_sampled_cpus"] == before - 1; }));
  REQUIRE(SecondCpu::set_online(true));
  CHECK(RunningDaemon::eventually(seconds(5), [&] { return daemon.metrics()["flamed_sampled_cpus"] == before; }));

  ChildProcess program({"taskset", "--cpu-list", "1", victim("known_chain")});
  CHECK(has_samples(daemon, program.pid(), 100));
  const nlohmann::json gap = told_gap(daemon, "cpu_came_online");
  CHECK(gap["to_ms"].get<double>() - gap["from_ms"].get<double>() < 1500 * patience());
  const RunningDaemon::End end = daemon.end();
  CHECK(end.taken == end.whole + end.truncated + end.lost);
}

TEST_CASE("a CPU that goes offline and comes back unnoticed is found silent and opened again") {
  SecondCpu restore;
  RunningDaemon daemon;
  const bool has_second = daemon.metrics()["flamed_sampled_cpus"] >= 2;
  // The daemon would be notified at once, so it must not run meanwhile.
  daemon.process().signal(SIGSTOP);
  const bool went = has_second && SecondCpu::set_online(false);
  const double went_ms = now_ms();
  const bool came = went && SecondCpu::set_online(true);
  const double came_ms = now_ms();
  daemon.process().signal(SIGCONT);
  if (!went) {
    WARN("SKIP hotplug: this machine has no second CPU that can be taken offline");
    return;
  }
  REQUIRE(came);
  const auto start = std::chrono::steady_clock::now();
  const ChildProcess program({"taskset", "--cpu-list", "1", victim("known_chain")});
  REQUIRE(RunningDaemon::eventually(seconds(5) * patience(),
                                    [&] { return daemon.metrics()["flamed_timers_reopened_total"] >= 1; }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  WARN("opened again " << took.count() << " s after it was back");
  CHECK(has_samples(daemon, program.pid(), 100));
  const nlohmann::json gap = told_gap(daemon, "timer_silent");
  CHECK(gap["from_ms"].get<double>() <= went_ms);
  CHECK(gap["to_ms"].get<double>() >= came_ms);
  const RunningDaemon::End end = daemon.end();
  CHECK(end.taken == end.whole + end.truncated + end.lost);
}

}  // namespace
}  // namespace flamed::test
