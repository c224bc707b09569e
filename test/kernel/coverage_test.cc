// SPDX-License-Identifier: Apache-2.0
//
// Compares the samples of a steady load with the kernel's accounts of it, both from the API.
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

/// 2 % and the chance error of counting, as a share of the whole. A timer tick meets a thread that shares its CPU by
/// chance, with the probability CPU time / CPUs' time. A thread with a CPU to itself is met at every tick, without
/// chance.
double allowed(double cpu_s, double cpus_s) {
  const double ticks = kFrequencyHz * cpus_s;
  const double probability = std::min(1.0, cpu_s / cpus_s);
  return kTolerance + binomial_tolerance(ticks, probability) / (ticks * probability);
}

std::int64_t wall_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// `stolen_s`: the time that the hypervisor took in the window.
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

TEST_CASE("the samples of a steady load cover the kernel's accounts, for its process and for the machine") {
  RunningDaemon daemon;
  ChildProcess program({victim("two_threads"), "600"});
  const std::string pid = std::to_string(program.pid());
  REQUIRE(RunningDaemon::eventually(
      seconds(60), [&] { return daemon.get_json("/profile?pid=" + pid)["samples"].get<double>() > 0; }));
  // The accounts are read every 7.5 s, and time between two readings is taken as even. So the load begins one reading
  // before the window and ends one after it.
  std::this_thread::sleep_for(seconds(8));
  const std::int64_t from_ms = wall_ms();
  const double stolen_before = stolen_seconds();
  std::this_thread::sleep_for(seconds(28));
  const double stolen = stolen_seconds() - stolen_before;
  const std::int64_t to_ms = wall_ms();
  std::this_thread::sleep_for(seconds(10));  // by then the window's last samples have arrived as well
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
