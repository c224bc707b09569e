// SPDX-License-Identifier: Apache-2.0
//
// SampleRing: one CPU's ring of samples and its ring of slices (bpf/sample_ring.h): a BPF map that the kernel program
// writes, mapped into our memory.
//
// Belongs to the reader thread. The program writes while it is drained.
#pragma once

#include "base/handle.h"
#include "base/mapped_memory.h"
#include "base/result.h"
#include "bpf/stack_slice.h"
#include "daemon/sampler/record_ring.h"

namespace flamed::daemon {

class SampleRing {
 public:
  /// Nothing writes into the ring before KernelProgram::give_rings().
  static Result<SampleRing> make(int cpu);

  [[nodiscard]] RecordRing& records() { return records_; }
  [[nodiscard]] flamed_slice_ring& slices();
  [[nodiscard]] int fd() const { return map_.get(); }
  [[nodiscard]] int cpu() const { return cpu_; }

 private:
  SampleRing(int cpu, Fd map, MappedMemory memory, RecordRing records);

  int cpu_;
  Fd map_;
  MappedMemory memory_;
  RecordRing records_;
};

}  // namespace flamed::daemon
