// SPDX-License-Identifier: Apache-2.0
//
// Sampler: the user-space half of bpf/sampler/sampler.bpf.c. Loads the program, keeps one timer, one ring of samples
// and one perf buffer for the kernel's side band on every online CPU, through hotplug and suspend, and drains them.
//
// Belongs to the reader thread, except functions marked otherwise.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/sampler/kernel_program.h"
#include "daemon/sampler/sampler_figures.h"
#include "daemon/sampler/stack_slices.h"

namespace flamed::daemon {

struct SamplerOptions {
  unsigned frequency_hz = 99;
  bool use_unwind_tables = true;  ///< else frame pointers alone
  bool use_stack_slices = true;   ///< only with tables: samples whose walk has to wait bring a slice of their stack
  bool use_runtimes = false;      ///< likewise: samples bring the frames of managed runtimes
};

class Sampler {
 public:
  /// From here on the kernel reports mappings, forks and ends; samples are taken from begin() on.
  static Result<std::unique_ptr<Sampler>> start(const SamplerOptions& options, const Clock& clock);
  ~Sampler();
  /// Begins to take samples. If all processes are known by then, every address can be resolved.
  Status begin();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Waits until a ring is half full, `timeout_ms` has passed, a CPU has come or gone, or the kernel program has met a
  /// process or an address that is not in its unwind tables: then it returns true, and the next drain should soon lead
  /// to an update of the tables. Such notices don't end the wait before `notices_from`.
  bool wait(int timeout_ms, MonotonicTime notices_from = {});

  /// Fills `batch` with all events up to now, in the order of time, and what `add_others` appends.
  void drain(EventBatch& batch, const std::function<void(EventBatch&)>& add_others = {});

  /// Opens and closes timers and rings for CPUs that came online or went offline, and reopens timers that have stopped
  /// (see TimerWatch). The next batch has the unsampled time as a gap. Call it after each drain: if wait() reports
  /// CPUs, it checks only now and then.
  void check_cpus();
  /// Will wait() end early for urgent events: new processes and mappings, CPUs that come or go? False if the kernel
  /// does not report them, and while a CPU's timer has to be opened again.
  [[nodiscard]] bool may_rest() const;

  /// From now on a sample is taken every `times` periods of the configured frequency. Each sample has its own weight
  /// (flamed_sample.weight_ns), and samples of two frequencies do not overlap in time. About half a period of each
  /// CPU's time is not sampled.
  void stretch_period(unsigned times);

  /// Stops sampling. Samples taken before can still be drained.
  void stop();

  // -- Any thread ---------------------------------------------------------------------------------------------------

  /// Ends the current wait() or the next one.
  void wake();

  [[nodiscard]] const SamplerFigures& figures() const;
  /// The loaded program, for its maps.
  [[nodiscard]] const KernelProgram& program() const;
  /// Sampling goes on while they are loaded.
  [[nodiscard]] WalkPrograms& walks();
  /// The slices that come with samples; for ingest.
  [[nodiscard]] StackSlices& slices();

 private:
  class Impl;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamed::daemon
