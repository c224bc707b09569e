// SPDX-License-Identifier: Apache-2.0
//
// CostMeter: what flamed has used so far, all of it: the kernel program, every thread, the ELF worker, and the helper
// that opens files.
//
// What it does not see: the interrupt around the kernel program, and what the kernel does for the side band in the
// threads that map, fork and end.
#pragma once

#include <vector>

#include "api/server/server.h"
#include "base/clock.h"
#include "base/thread_cpu.h"
#include "daemon/budget/cpu_governor.h"
#include "daemon/sampler/sampler.h"
#include "symbolizer/opener/guarded_opener.h"
#include "symbolizer/worker/worker_module_reader.h"

namespace flamed::daemon {

class CostMeter {
 public:
  /// `background` are the threads whose work is not sampling and that nobody waits for. All must outlive it.
  CostMeter(const Clock& clock, const Sampler& sampler, const api::Server& server,
            const symbolizer::WorkerModuleReader& worker, const symbolizer::GuardedOpener& opener,
            std::vector<ThreadCpu> background);

  /// A dozen system calls of less than a microsecond.
  [[nodiscard]] CostReading read() const;

 private:
  const Clock& clock_;
  const Sampler& sampler_;
  const api::Server& server_;
  const symbolizer::WorkerModuleReader& worker_;
  const symbolizer::GuardedOpener& opener_;
  const std::vector<ThreadCpu> background_;
};

}  // namespace flamed::daemon
