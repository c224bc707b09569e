// SPDX-License-Identifier: Apache-2.0
//
// The cost of a sample in user space, from the bytes in the ring to the store, by the number of CPUs, processes and
// hours. Samples are recorded from the running kernel first, then multiplied. One JSON object on stdout. Needs root.
//
//   replay_bench [seconds to record [samples for each figure [hours]]]      (default 5, 400000, 24)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>

#include "test/bench/scale/allocations.h"
#include "test/bench/scale/pipeline.h"
#include "test/bench/scale/recording.h"
#include "test/bench/scale/synthetic_host.h"

namespace flamed::bench {
namespace {

constexpr std::size_t kFewProcesses = 100;
constexpr std::size_t kManyProcesses = 10'000;
constexpr std::size_t kFewCpus = 2;
constexpr std::size_t kManyCpus = 64;

struct Figures {
  double decode_ns = 0, ingest_ns = 0;  ///< per sample
  double enter_us = 0;                  ///< per process
  double allocations = 0;               ///< per sample, including the end of a minute
  double repeated_allocations = 0;      ///< per sample of a second that repeats one of the same minute
};

nlohmann::json to_json(const char* axis, std::size_t value, const Figures& figures) {
  return {{axis, value},
          {"ns_per_sample", figures.decode_ns + figures.ingest_ns},
          {"decode_ns", figures.decode_ns},
          {"ingest_ns", figures.ingest_ns},
          {"enter_us_per_process", figures.enter_us},
          {"allocations_per_sample", figures.allocations},
          {"allocations_per_repeated_sample", figures.repeated_allocations}};
}

class Replay {
 public:
  Replay(const Recording& recording, std::size_t processes, std::size_t cpus, SyntheticHost::Shares shares)
      : host_(recording, processes, cpus, shares) {
    entering_us_ = pipeline_.enter(host_) / 1e3 / static_cast<double>(processes);
  }

  /// This many seconds, with one drain each.
  Figures run(std::size_t seconds) {
    Figures figures;
    figures.enter_us = entering_us_;
    std::uint64_t allocated = 0;
    for (std::size_t i = 0; i < seconds; ++i) {
      host_.sample_second(pipeline_.clock.monotonic(), ++seed_);
      const std::uint64_t before = allocations();
      const Pipeline::Took took = pipeline_.drain(host_.rings());
      allocated += allocations() - before;
      figures.decode_ns += took.decode_ns;
      figures.ingest_ns += took.ingest_ns;
    }
    const auto samples = static_cast<double>(seconds * host_.samples_per_second());
    figures.decode_ns /= samples;
    figures.ingest_ns /= samples;
    figures.allocations = static_cast<double>(allocated) / samples;
    return figures;
  }

  /// Runs until every process has been seen, its modules are open and its stacks known.
  void warm_up() {
    run(1);
    pipeline_.open_modules();
    run(std::clamp<std::size_t>(4 * host_.processes() / host_.samples_per_second(), 10, 600));
    pipeline_.open_modules();
  }

  double repeated_allocations() {
    std::uint64_t least = UINT64_MAX;
    // The end of a minute may be between two drains, but not twice in a row.
    for (int i = 0; i < 3; ++i) {
      drain_same();
      const std::uint64_t before = allocations();
      drain_same();
      least = std::min(least, allocations() - before);
    }
    return static_cast<double>(least) / static_cast<double>(host_.samples_per_second());
  }

  [[nodiscard]] Pipeline& pipeline() { return pipeline_; }

 private:
  void drain_same() {
    host_.sample_second(pipeline_.clock.monotonic(), 0);
    pipeline_.drain(host_.rings());
  }

  Pipeline pipeline_;
  SyntheticHost host_;
  double entering_us_ = 0;
  std::uint64_t seed_ = 0;
};

Figures measure(const Recording& recording, std::size_t processes, std::size_t cpus, std::size_t samples,
                SyntheticHost::Shares shares = SyntheticHost::Shares::kFewMuch) {
  const auto replay = std::make_unique<Replay>(recording, processes, cpus, shares);
  replay->warm_up();
  Figures figures = replay->run(std::max<std::size_t>(samples / (cpus * SyntheticHost::kHertz), 5));
  figures.repeated_allocations = replay->repeated_allocations();
  return figures;
}

nlohmann::json measure_hours(const Recording& recording, int hours) {
  nlohmann::json by_hour = nlohmann::json::array();
  const auto replay = std::make_unique<Replay>(recording, kFewProcesses, kFewCpus, SyntheticHost::Shares::kFewMuch);
  replay->warm_up();
  for (int hour = 1; hour <= hours; ++hour) {
    nlohmann::json figures = to_json("hours", static_cast<std::size_t>(hour), replay->run(3600));
    figures["store_bytes"] = replay->pipeline().store.stats().used_bytes;
    by_hour.push_back(figures);
  }
  return by_hour;
}

int run(int seconds, std::size_t samples, int hours) {
  const Result<Recording> recording = record(seconds);
  if (!recording) {
    std::fprintf(stderr, "%s\n", recording.error().message().c_str());
    return 1;
  }
  const auto per_sample = [&](std::size_t value) {
    return static_cast<double>(value) / static_cast<double>(recording->samples);
  };
  nlohmann::json report = {{"recorded_samples", recording->samples},
                           {"recorded_processes", recording->processes.size()},
                           {"distinct_stacks", recording->distinct_stacks},
                           {"frames_per_sample", per_sample(recording->frames)},
                           {"samples_per_figure", samples},
                           {"processes_while_cpus_grow", kFewProcesses},
                           {"cpus_while_processes_grow", kManyCpus}};
  for (const std::size_t cpus : {2U, 8U, 64U, 256U}) {
    report["cpus"].push_back(to_json("cpus", cpus, measure(*recording, kFewProcesses, cpus, samples)));
  }
  for (const std::size_t processes : {std::size_t{10}, std::size_t{100}, std::size_t{1000}, kManyProcesses}) {
    report["processes"].push_back(to_json("processes", processes, measure(*recording, processes, kManyCpus, samples)));
  }
  report["processes_even"] =
      to_json("processes", kManyProcesses,
              measure(*recording, kManyProcesses, kManyCpus, samples, SyntheticHost::Shares::kEven));
  report["hours"] = measure_hours(*recording, hours);
  std::printf("%s\n", report.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace flamed::bench

int main(int argc, char** argv) try {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 5;
  const int samples = argc > 2 ? std::atoi(argv[2]) : 400'000;
  const int hours = argc > 3 ? std::atoi(argv[3]) : 24;
  return flamed::bench::run(seconds, static_cast<std::size_t>(samples), hours);
} catch (const std::exception& exception) {
  std::fprintf(stderr, "replay_bench: %s\n", exception.what());
  return 1;
}
