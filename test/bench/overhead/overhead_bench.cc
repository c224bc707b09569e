// SPDX-License-Identifier: Apache-2.0
//
// What flamed costs in the steady state, on the reference load: one program per CPU that does nothing but compute, with
// frame pointers. One JSON object on stdout. Needs root, and the environment that run.sh sets.
//
//   overhead_bench [seconds] [repetitions]      (default 20, 5)
#include <bpf/bpf.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/handle.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

/// Minimum, median and maximum of what was measured.
nlohmann::json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"min", values.front()}, {"median", values[values.size() / 2]}, {"max", values.back()}};
}

struct Interval {
  double bpf_seconds = 0, bpf_runs = 0, daemon_seconds = 0, wall_seconds = 0;
};

Interval measure(const RunningDaemon& daemon, int seconds) {
  const auto read = [&] {
    auto metrics = daemon.metrics();
    return Interval{metrics["flamed_bpf_run_seconds_total"], metrics["flamed_bpf_runs_total"],
                    metrics["flamed_cpu_seconds_total"], 0};
  };
  const Interval before = read();
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // Asking for metrics costs the daemon a little, too: the first question is inside the interval, the last is not.
  const Interval after = read();
  return {after.bpf_seconds - before.bpf_seconds, after.bpf_runs - before.bpf_runs,
          after.daemon_seconds - before.daemon_seconds, wall};
}

int run(int seconds, int repetitions) {
  const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::vector<std::unique_ptr<ChildProcess>> load;
  for (long i = 0; i < cpus; ++i) {
    load.push_back(std::make_unique<ChildProcess>(
        std::vector<std::string>{std::string(std::getenv("FLAMED_VICTIMS")) + "/victim_known_chain"}));
  }
  const RunningDaemon daemon;
  const Fd statistics(::bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!statistics) {
    std::fprintf(stderr, "cannot turn on the kernel's statistics of BPF programs\n");
    return 1;
  }
  std::this_thread::sleep_for(std::chrono::seconds(3));

  std::vector<double> bpf_ns;
  std::vector<double> bpf_percent;
  std::vector<double> daemon_percent;
  std::vector<double> total_percent;
  for (int i = 0; i < repetitions; ++i) {
    const Interval interval = measure(daemon, seconds);
    const double cpu_seconds = interval.wall_seconds * static_cast<double>(cpus);
    bpf_ns.push_back(interval.bpf_seconds / interval.bpf_runs * 1e9);
    bpf_percent.push_back(100 * interval.bpf_seconds / cpu_seconds);
    daemon_percent.push_back(100 * interval.daemon_seconds / cpu_seconds);
    total_percent.push_back(bpf_percent.back() + daemon_percent.back());
  }
  utsname system{};
  ::uname(&system);
  const nlohmann::json report = {
      {"kernel", system.release},
      {"cpus", cpus},
      {"load", "one computing program per CPU, with frame pointers"},
      {"seconds", seconds},
      {"repetitions", repetitions},
      {"bpf_ns_per_sample", spread(bpf_ns)},
      {"bpf_percent_of_a_core_per_busy_cpu", spread(bpf_percent)},
      {"daemon_percent_of_a_core_per_busy_cpu", spread(daemon_percent)},
      {"whole_percent_of_a_core_per_busy_cpu", spread(total_percent)},
      {"resident_bytes", daemon.metrics()["flamed_resident_bytes"]},
  };
  std::printf("%s\n", report.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace flamed::test

int main(int argc, char** argv) try {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 20;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 5;
  return flamed::test::run(seconds, repetitions);
} catch (const std::exception& exception) {
  std::fprintf(stderr, "%s\n", exception.what());
  return 1;
}
