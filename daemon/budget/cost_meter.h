// SPDX-License-Identifier: Apache-2.0
//
// CostMeter: all CPU time that flamed has used so far: the kernel program, every thread, the ELF worker, the open
// helper, and flamed-push, as far as it says so.
//
// It does not include the interrupt around the kernel program, and the kernel's work for the side band in threads that
// map, fork and exit.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "api/server/server.h"
#include "base/clock.h"
#include "base/thread_cpu.h"
#include "daemon/budget/cpu_governor.h"
#include "daemon/sampler/sampler_figures.h"
#include "symbolizer/opener/guarded_opener.h"
#include "symbolizer/worker/worker_module_reader.h"

namespace flamed::daemon {

class CostMeter {
 public:
  /// `background` are the threads that do not sample and that nobody waits for, `names` those that read the names that
  /// samples wait for, `pushing_ns` is the CPU time of flamed-push, which counts as background. All arguments must
  /// outlive it.
  CostMeter(const Clock& clock, const SamplerFigures& sampling, const api::Server& server,
            const symbolizer::WorkerModuleReader& worker, const symbolizer::GuardedOpener& opener,
            std::vector<ThreadCpu> background, std::vector<ThreadCpu> names,
            const std::atomic<std::int64_t>& pushing_ns);

  /// A dozen system calls of less than a microsecond.
  [[nodiscard]] CostReading read() const;

 private:
  const Clock& clock_;
  const SamplerFigures& sampling_;
  const api::Server& server_;
  const symbolizer::WorkerModuleReader& worker_;
  const symbolizer::GuardedOpener& opener_;
  const std::vector<ThreadCpu> background_;
  const std::vector<ThreadCpu> names_;
  const std::atomic<std::int64_t>& pushing_ns_;
};

}  // namespace flamed::daemon
