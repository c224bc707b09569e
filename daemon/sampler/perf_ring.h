// SPDX-License-Identifier: Apache-2.0
//
// PerfRing: one CPU's perf buffer, into which the kernel writes its side band: MMAP2, COMM, FORK and EXIT of every
// process on the CPU.
//
// Belongs to the reader thread. The kernel writes while it is drained.
#pragma once

#include <cstddef>

#include "base/handle.h"
#include "base/mapped_memory.h"
#include "base/result.h"
#include "daemon/sampler/record_ring.h"

namespace flamed::daemon {

class PerfRing {
 public:
  struct Options {
    std::size_t data_bytes = 512 * 1024;  ///< a power of two, at least a page
    bool side_band = true;                ///< else the kernel writes nothing, and the event only shows when the CPU
                                          ///< goes offline
  };

  /// Opens and maps, but does not enable. Wakes a poll only when half full; drain it periodically for earlier data.
  static Result<PerfRing> open(int cpu, const Options& options);

  Status enable();

  [[nodiscard]] RecordRing& records() { return records_; }
  /// The event: read() returns the time that it has run (PERF_FORMAT_TOTAL_TIME_RUNNING).
  [[nodiscard]] int fd() const { return event_.get(); }
  [[nodiscard]] int cpu() const { return cpu_; }

 private:
  PerfRing(int cpu, Fd event, MappedMemory memory, RecordRing records);

  int cpu_;
  Fd event_;
  MappedMemory memory_;  ///< one control page (perf_event_mmap_page), then the data
  RecordRing records_;
};

}  // namespace flamed::daemon
