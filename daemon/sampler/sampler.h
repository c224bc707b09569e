// SPDX-License-Identifier: Apache-2.0
//
// Sampler: the user-space half of bpf/sampler.bpf.c. Loads the program, keeps one timer, one ring of samples and
// one perf buffer for the kernel's side band on every online CPU, through hotplug and suspend, and drains them.
//
// Belongs to the reader thread, except functions marked otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "bpf/kernel_tables.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/sampler/side_band.h"
#include "daemon/unwind/bpf_unwind_maps.h"

namespace flamed::daemon {

struct SamplerOptions {
  unsigned frequency_hz = 99;
  bool use_unwind_tables = true;  ///< else frame pointers alone
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

  /// Fills `batch` with all events up to now, in the order of time.
  void drain(EventBatch& batch);

  /// Opens and closes timers and rings for CPUs that came online or went offline, and reopens timers that have stopped
  /// (see TimerWatch). The next batch has the unsampled time as a gap. Call it after each drain: if wait() reports
  /// CPUs, it checks only now and then.
  void check_cpus();
  /// Will wait() end early for urgent events: new processes and mappings, CPUs that come or go? False if the kernel
  /// does not report them, and while a CPU's timer has to be opened again.
  [[nodiscard]] bool may_rest() const;

  /// The maps of the unwind tables; empty if the kernel refused them and stacks are walked by frame pointers alone.
  [[nodiscard]] std::optional<UnwindMapFds> unwind_maps() const;
  /// Does lockdown forbid the program its usual way of reading kernel memory?
  [[nodiscard]] bool reads_by_type() const;

  /// From now on a sample is taken every `times` periods of the configured frequency. Each sample has its own weight
  /// (flamed_sample.weight_ns), and samples of two frequencies do not overlap in time. About half a period of each
  /// CPU's time is not sampled.
  void stretch_period(unsigned times);

  /// CPU time that one sample stands for.
  [[nodiscard]] std::int64_t period_ns() const;
  /// Does the kernel report mapping changes? Otherwise they are read from /proc.
  [[nodiscard]] bool has_side_band() const;

  /// Stops sampling. Samples taken before can still be drained.
  void stop();

  /// Ends the current wait() or the next one. Any thread.
  void wake();

  // -- Any thread ---------------------------------------------------------------------------------------------------

  /// Loads the program that walks stacks by unwind tables, which takes longer than the rest of a start. Until then
  /// stacks are walked by frame pointers. Call it once, and only if there are maps for tables.
  Status load_walk();
  /// Loads the program that walks kernel stacks. Until then the kernel walks them, which takes longer. Call it once.
  Status load_kernel_walk(const Result<flamed_kernel_orc>& orc);
  /// Why the kernel itself walks kernel stacks; empty if our program does.
  [[nodiscard]] std::string why_no_kernel_walk() const;
  /// Why stacks are not walked by unwind tables now; empty if they are.
  [[nodiscard]] std::string why_no_tables() const;
  /// Samples taken by the kernel program since start, over all CPUs.
  [[nodiscard]] std::uint64_t taken() const;
  [[nodiscard]] double frequency_hz() const;      ///< in force
  [[nodiscard]] std::int64_t program_ns() const;  ///< CPU time of the kernel program since start; no system call
  [[nodiscard]] std::size_t cpus() const;         ///< with a live timer and perf buffer
  [[nodiscard]] std::uint64_t reopened() const;   ///< timers that were opened again
  [[nodiscard]] SideBandSkipped side_band_skipped() const;
  [[nodiscard]] std::string last_problem() const;  ///< why a CPU is not sampled; empty when all are
  [[nodiscard]] int program_fd() const;            ///< of the BPF program, for reading its run time

 private:
  class Impl;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamed::daemon
