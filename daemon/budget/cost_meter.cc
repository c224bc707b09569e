// SPDX-License-Identifier: Apache-2.0
#include "daemon/budget/cost_meter.h"

#include <utility>

namespace flamed::daemon {

CostMeter::CostMeter(const Clock& clock, const SamplerFigures& sampling, const api::Server& server,
                     const symbolizer::WorkerModuleReader& worker, const symbolizer::GuardedOpener& opener,
                     std::vector<ThreadCpu> background, std::vector<ThreadCpu> names,
                     const std::atomic<std::int64_t>& pushing_ns)
    : clock_(clock),
      sampling_(sampling),
      server_(server),
      worker_(worker),
      opener_(opener),
      background_(std::move(background)),
      names_(std::move(names)),
      pushing_ns_(pushing_ns) {}

CostReading CostMeter::read() const {
  CostReading cost;
  cost.now = clock_.monotonic();
  cost.cpus = sampling_.cpus();
  cost.program_ns = sampling_.program_ns();
  for (const ThreadCpu& thread : background_) cost.background_ns += thread.ns();
  for (const ThreadCpu& thread : names_) cost.names_ns += thread.ns();
  cost.answers_ns = server_.cpu_ns();
  cost.skipping_ns = sampling_.side_band_skipped().ns;
  cost.daemon_ns = read_cpu_clock(CLOCK_PROCESS_CPUTIME_ID) - cost.names_ns - cost.skipping_ns - cost.background_ns -
                   cost.answers_ns;
  const symbolizer::WorkerModuleReader::CpuUse worker = worker_.cpu_use();
  cost.background_ns += worker.background_ns + opener_.stats().cpu_ns + pushing_ns_.load(std::memory_order_relaxed);
  cost.names_ns += worker.samples_ns;
  cost.answers_ns += worker.all_ns - worker.background_ns - worker.samples_ns;
  return cost;
}

}  // namespace flamed::daemon
