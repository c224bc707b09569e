// SPDX-License-Identifier: Apache-2.0
//
// CostMeter: what flamed has used so far, all of it: the kernel program, every thread, and the ELF worker.
//
// What it does not see: the interrupt around the kernel program, what the kernel does for the side band in the threads
// that map, fork and end, and the helper process that opens files of file systems which may hang.
#pragma once

#include <vector>

#include "api/server.h"
#include "base/clock.h"
#include "base/thread_cpu.h"
#include "daemon/budget/cpu_governor.h"
#include "daemon/sampler/sampler.h"
#include "symbolizer/worker/worker_module_reader.h"

namespace flamed::daemon {

class CostMeter {
 public:
  /// `background` are the threads whose work is not sampling and that nobody waits for. All must outlive it.
  CostMeter(const Clock& clock, const Sampler& sampler, const api::Server& server,
            const symbolizer::WorkerModuleReader& worker, std::vector<ThreadCpu> background);

  /// A dozen system calls of less than a microsecond.
  [[nodiscard]] CostReading read() const;

 private:
  const Clock& clock_;
  const Sampler& sampler_;
  const api::Server& server_;
  const symbolizer::WorkerModuleReader& worker_;
  const std::vector<ThreadCpu> background_;
};

}  // namespace flamed::daemon
