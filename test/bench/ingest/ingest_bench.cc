// SPDX-License-Identifier: Apache-2.0
//
// What user space does with a sample, from the bytes in the ring to the store, in nanoseconds: samples are recorded
// from the running kernel first, then replayed again and again. One JSON object on stdout. Needs root.
//
//   ingest_bench [seconds to record] [rounds]      (default 5, 200)
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "daemon/ingest.h"
#include "daemon/sampler/sampler.h"
#include "store/store.h"
#include "symbolizer/module_table.h"
#include "symbolizer/process_table.h"

namespace flamed::daemon {
namespace {

/// The calling thread's CPU time.
std::int64_t cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

struct Recorded {
  RecordHead head;
  std::vector<std::byte> body;
};

/// Samples alone: mapping changes belong to processes that will be gone when they are replayed.
std::vector<Recorded> record(Sampler& sampler, int seconds) {
  std::vector<Recorded> records;
  EventBatch batch;
  for (int i = 0; i <= seconds; ++i) {
    sampler.wait(1000);
    sampler.drain(batch);
    for (const EventBatch::Event& event : batch.events()) {
      if (event.kind != RecordKind::kSample) continue;
      const auto body = batch.body(event);
      Recorded record{{event.kind, false, event.time, {}}, {body.begin(), body.end()}};
      records.push_back(std::move(record));
    }
  }
  for (Recorded& record : records) record.head.body = record.body;
  return records;
}

int run(int seconds, int rounds) {
  const SystemClock clock;
  // Nobody fills tables here: the load has frame pointers.
  SamplerOptions options;
  options.use_unwind_tables = false;
  Result<std::unique_ptr<Sampler>> sampler = Sampler::start(options, clock);
  if (!sampler) {
    std::fprintf(stderr, "%s\n", sampler.error().message().c_str());
    return 1;
  }
  symbolizer::ModuleTable modules(1024, clock);
  symbolizer::ProcessTable processes(modules, clock);
  processes.scan();
  if (const Status begun = (*sampler)->begin(); !begun) {
    std::fprintf(stderr, "%s\n", begun.error().message().c_str());
    return 1;
  }
  const std::vector<Recorded> records = record(**sampler, seconds);
  (*sampler)->stop();
  if (records.empty()) {
    std::fprintf(stderr, "no samples: the machine is idle; run a load beside\n");
    return 1;
  }

  store::Store store({}, clock, (*sampler)->period_ns());
  symbolizer::ProcessDetails details(symbolizer::CommandLines::kFull);
  Ingest ingest(processes, details, modules, store, clock);
  EventBatch batch;
  EventBatch later;
  std::int64_t drain_ns = 0;
  std::int64_t ingest_ns = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::uint64_t frames = 0;
  // The first rounds enter stacks and processes; the rest is the steady state.
  for (int round = -2; round < rounds; ++round) {
    const MonotonicTime now = clock.monotonic();
    const std::int64_t start = cpu_ns();
    batch.clear();
    for (const Recorded& record : records) {
      RecordHead head = record.head;
      head.time = now;
      batch.append(head);
    }
    batch.sort_and_split(now, later);
    batch.drained_at = now;
    const std::int64_t drained = cpu_ns();
    ingest.apply(batch);
    const std::int64_t done = cpu_ns();
    if (round < 0) continue;
    drain_ns += drained - start;
    ingest_ns += done - drained;
    samples += records.size();
    for (const Recorded& record : records) {
      bytes += record.body.size();
      frames += (record.body.size() - sizeof(flamed_sample)) / sizeof(std::uint64_t);
    }
  }
  const auto per_sample = [&](double value) { return value / static_cast<double>(samples); };
  const nlohmann::json report = {
      {"recorded_samples", records.size()},
      {"replayed_samples", samples},
      {"bytes_per_sample", per_sample(static_cast<double>(bytes))},
      {"frames_per_sample", per_sample(static_cast<double>(frames))},
      {"drain_ns_per_sample", per_sample(static_cast<double>(drain_ns))},
      {"normalise_and_store_ns_per_sample", per_sample(static_cast<double>(ingest_ns))},
      {"samples_per_second_of_one_core", 1e9 / per_sample(static_cast<double>(drain_ns + ingest_ns))},
  };
  std::printf("%s\n", report.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace flamed::daemon

int main(int argc, char** argv) try {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 5;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 200;
  return flamed::daemon::run(seconds, rounds);
} catch (const std::exception& exception) {
  std::fprintf(stderr, "%s\n", exception.what());
  return 1;
}
