// SPDX-License-Identifier: Apache-2.0
//
// The CPU budget on a real kernel, with a load that costs three times the budget. Checks that the samples' CPU time
// matches the kernel's accounts while the frequency changes.
#include <csignal>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <unistd.h>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/binomial_tolerance.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/support/stolen_time.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr double kFullHz = 997;

/// A configuration file that is removed with this.
class ConfigFile {
 public:
  ConfigFile() : path_(std::filesystem::temp_directory_path() / ("flamed-budget-" + std::to_string(::getpid()))) {}
  ~ConfigFile() { std::filesystem::remove(path_); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  std::string set_budget(const std::string& budget) const {
    std::ofstream(path_) << R"({"frequency_hz": 997, "cpu_budget": ")" << budget << "\"}\n";
    return path_;
  }

 private:
  std::filesystem::path path_;
};

/// A metric by its name with labels, as in /metrics.
double metric(const RunningDaemon& daemon, const std::string& name) {
  std::istringstream lines(daemon.get("/metrics").body);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + " ", 0) == 0) return std::strtod(line.c_str() + name.size(), nullptr);
  }
  FAIL("no metric " << name);
  return 0;
}

/// The cost of sampling, as a share of all CPUs' time. The tables of programs that run at the start are not limited.
double sampling_cost(const RunningDaemon& daemon) {
  double sum = 0;
  for (const char* part : {"kernel_program", "daemon"}) {
    sum += metric(daemon, std::string("flamed_cost_ratio{part=\"") + part + "\"}");
  }
  return sum;
}

std::string in_percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f%%", std::max(0.01, part * 100));
  return text;
}

TEST_CASE("a load that costs three times the budget is brought under it, and CPU times stay true") {
  const ConfigFile file;
  RunningDaemon daemon({"--config", file.set_budget("off")});
  const double cpus = daemon.metrics().at("flamed_sampled_cpus");
  const double stolen_before = stolen_seconds();
  ChildProcess load({victim("two_threads"), "50"});
  // The least, since the tables and names of what runs at the start cost something for a while.
  double cost = 1;
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(seconds(6));  // flamed_cost_ratio is of the last 5 s
    cost = std::min(cost, sampling_cost(daemon));
  }
  REQUIRE(metric(daemon, "flamed_sampling_frequency_hertz") == kFullHz);
  const double budget = std::max(cost / 3, 0.0001);
  static_cast<void>(file.set_budget(in_percent(budget)));
  daemon.process().signal(SIGHUP);

  const auto began = std::chrono::steady_clock::now();
  // 10 s if the CPUs are otherwise idle. Each query is a new process, which costs the daemon something.
  const bool kept = RunningDaemon::eventually(
      seconds(20) * patience(),
      [&] { return metric(daemon, "flamed_sampling_frequency_hertz") < kFullHz && sampling_cost(daemon) <= budget; },
      seconds(1));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const double hz = metric(daemon, "flamed_sampling_frequency_hertz");
  WARN("cost " << in_percent(cost) << " at " << kFullHz << " Hz, budget " << in_percent(budget) << "; after "
               << took.count() << " s " << in_percent(sampling_cost(daemon)) << " at " << hz << " Hz");
  CHECK(kept);
  CHECK(metric(daemon, "flamed_frequency_steps_total{direction=\"down\"}") >= 1);
  CHECK(metric(daemon, "flamed_cpu_budget_ratio") == Approx(budget).epsilon(0.01));

  const nlohmann::json health = daemon.get_json("/healthz");
  const auto component = std::find_if(health["components"].begin(), health["components"].end(),
                                      [](const auto& candidate) { return candidate["name"] == "cpu_budget"; });
  REQUIRE(component != health["components"].end());
  CHECK((*component)["ok"] == false);
  CHECK((*component)["detail"].get<std::string>().find("instead of 997") != std::string::npos);
  CHECK(daemon.get("/healthz").status == 200);

  const auto used = load.read_line(seconds(200));
  REQUIRE(used.has_value());
  const double used_s = std::strtod(used->c_str(), nullptr) / 1e9;
  const double stolen_s = stolen_seconds() - stolen_before;
  std::this_thread::sleep_for(seconds(3));  // the last samples arrive after up to one
  const nlohmann::json answer = daemon.get_json("/profile?pid=" + std::to_string(load.pid()));
  const auto sampled_s = answer["cpu_seconds"].get<double>();
  const auto samples = answer["samples"].get<double>();
  // At the lower frequency, whether a tick meets a thread that shares its CPU is chance: see coverage_test.cc.
  const double share = std::min(1.0, used_s / (std::min(2.0, cpus) * 50));
  const double ticks = hz * 30 * std::min(2.0, cpus);
  const double allowed = 0.03 + binomial_tolerance(ticks, share) / (ticks * share);
  WARN(sampled_s << " s by " << samples << " samples, " << used_s << " s by the kernel's accounts: "
                 << sampled_s / used_s << " +- " << allowed << "; the hypervisor took " << stolen_s << " s");
  CHECK(sampled_s / used_s >= 1 - allowed);
  CHECK((sampled_s - stolen_s) / used_s <= 1 + allowed);
  // It has samples of both frequencies, counted in units of the higher one.
  const nlohmann::json& frequencies = answer["quality"]["frequencies"];
  INFO(frequencies.dump());
  REQUIRE(frequencies.size() >= 2);
  CHECK(frequencies.front()["hz"] == kFullHz);
  CHECK(frequencies.front()["share"].get<double>() > 0.1);
  CHECK(frequencies.back()["hz"].get<double>() <= kFullHz / 2);
  CHECK(samples == Approx(sampled_s * kFullHz).epsilon(0.001));
}

}  // namespace
}  // namespace flamed::test
