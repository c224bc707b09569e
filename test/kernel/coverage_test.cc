// SPDX-License-Identifier: Apache-2.0
//
// The samples of a steady load beside the kernel's own accounts of it, as the API tells both.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/binomial_tolerance.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/support/stolen_time.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr double kFrequencyHz = 99;
constexpr double kTolerance = 0.02;

/// 2 % and what counting leaves to chance, as a part of the whole. A thread that shares its CPU is met at a timer tick
/// by chance, with the probability CPU time / CPUs' time. With a CPU to itself it is met at every tick, and nothing is
/// left to chance.
double allowed(double cpu_s, double cpus_s) {
  const double ticks = kFrequencyHz * cpus_s;
  const double probability = std::min(1.0, cpu_s / cpus_s);
  return kTolerance + binomial_tolerance(ticks, probability) / (ticks * probability);
}

std::int64_t wall_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// `stolen_s`: what the hypervisor took in the window.
void check_coverage(const nlohmann::json& answer, double cpus, double stolen_s) {
  INFO(answer["coverage"].dump() << ", samples " << answer["samples"] << ", window "
                                 << answer["window"]["used"].dump());
  REQUIRE(answer["coverage"]["share"].is_number());
  const double window_s =
      (answer["window"]["used"]["to_ms"].get<double>() - answer["window"]["used"]["from_ms"].get<double>()) / 1000;
  const double accounted_s = answer["coverage"]["cpu_seconds_accounted"].get<double>();
  const double share = answer["coverage"]["share"].get<double>();
  const double tolerance = allowed(accounted_s, cpus * window_s);
  WARN("coverage " << share << " +- " << tolerance << " of " << accounted_s << " s in " << window_s
                   << " s; the hypervisor took " << stolen_s << " s");
  CHECK(share >= 1 - tolerance);
  CHECK(share <= 1 + tolerance + stolen_s / accounted_s);
  CHECK(share == Approx(answer["cpu_seconds"].get<double>() / accounted_s).epsilon(0.0001));
}

TEST_CASE("of a steady load the samples cover what the kernel accounts, for its process and for the machine") {
  RunningDaemon daemon;
  ChildProcess program({victim("two_threads"), "600"});
  const std::string pid = std::to_string(program.pid());
  REQUIRE(RunningDaemon::eventually(
      seconds(60), [&] { return daemon.get_json("/profile?pid=" + pid)["samples"].get<double>() > 0; }));
  // The accounts are read every 7.5 s, and what lies between two readings is taken to be even: the load begins a
  // reading before the window and goes on for one behind it.
  std::this_thread::sleep_for(seconds(8));
  const std::int64_t from_ms = wall_ms();
  const double stolen_before = stolen_seconds();
  std::this_thread::sleep_for(seconds(28));
  const double stolen = stolen_seconds() - stolen_before;
  const std::int64_t to_ms = wall_ms();
  std::this_thread::sleep_for(seconds(10));  // by then the window's last samples have come as well
  const double cpus = daemon.metrics().at("flamed_sampled_cpus");
  const std::string window = "?from=" + std::to_string(from_ms) + "&to=" + std::to_string(to_ms);
  for (const char* format : {"flamegraph", "columns", "top"}) {
    INFO(format);
    std::string question = "/profile" + window;
    question.append("&format=").append(format);
    check_coverage(daemon.get_json(question), cpus, stolen);
    check_coverage(daemon.get_json(question.append("&pid=").append(pid)), std::min(2.0, cpus), stolen);
  }
  const nlohmann::json diff = daemon.get_json("/diff" + window + "&base_from=" + std::to_string(to_ms - 14'000) +
                                              "&base_to=" + std::to_string(to_ms) + "&format=top&pid=" + pid);
  CHECK(diff["after"]["coverage"].contains("share"));
  const nlohmann::json other = daemon.get_json("/profile" + window + "&comm=two_threads");
  CHECK(other["coverage"]["share"].is_null());
  CHECK(other["coverage"]["reason"].is_string());
}

}  // namespace
}  // namespace flamed::test
