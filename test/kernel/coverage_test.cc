// SPDX-License-Identifier: Apache-2.0
//
// The samples of a steady load beside the kernel's own accounts of it, as the API tells both.
#include <algorithm>
#include <string>

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

/// `stolen_s`: what the hypervisor took meanwhile.
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
  const double stolen_before = stolen_seconds();
  ChildProcess program({victim("two_threads"), "45"});
  const std::string pid = std::to_string(program.pid());
  // What is asked for lies within the load, and all of its samples have come.
  REQUIRE(RunningDaemon::eventually(
      seconds(60), [&] { return daemon.get_json("/profile?pid=" + pid)["samples"].get<double>() > 0; }));
  REQUIRE(program.read_line(seconds(200)).has_value());
  const double stolen = stolen_seconds() - stolen_before;
  const double cpus = daemon.metrics().at("flamed_sampled_cpus");
  const std::string window = "?from=now-38s&to=now-10s";
  for (const char* format : {"flamegraph", "columns", "top"}) {
    INFO(format);
    std::string question = "/profile" + window;
    question.append("&format=").append(format);
    check_coverage(daemon.get_json(question), cpus, stolen);
    check_coverage(daemon.get_json(question.append("&pid=").append(pid)), std::min(2.0, cpus), stolen);
  }
  const nlohmann::json diff =
      daemon.get_json("/diff" + window + "&base_from=now-24s&base_to=now-10s&format=top&pid=" + pid);
  CHECK(diff["after"]["coverage"].contains("share"));
  const nlohmann::json other = daemon.get_json("/profile" + window + "&comm=two_threads");
  CHECK(other["coverage"]["share"].is_null());
  CHECK(other["coverage"]["reason"].is_string());
}

}  // namespace
}  // namespace flamed::test
