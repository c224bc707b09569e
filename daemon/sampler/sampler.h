// SPDX-License-Identifier: Apache-2.0
//
// Sampler: the user-space half of bpf/sampler.bpf.c. Loads the program, keeps one timer, one ring of samples and
// one perf buffer for the kernel's side band on every online CPU, also through hotplug and suspend, and drains them.
//
// Belongs to the reader thread, except where a function says otherwise.
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
#include "daemon/unwind/bpf_unwind_maps.h"

namespace flamed::daemon {

struct SamplerOptions {
  unsigned frequency_hz = 99;
  bool use_unwind_tables = true;  ///< else frame pointers alone
};

/// What of the kernel's side band was not read, since its users went beyond their shares (SideBandShares).
struct SideBandSkipped {
  std::uint64_t records = 0;  ///< since start
  std::size_t processes = 0;  ///< whose they were, at the last drain
  std::int64_t ns = 0;        ///< CPU time since start, for reading past them
};

class Sampler {
 public:
  /// From here on the kernel reports mappings, forks and ends; samples are taken from begin() on.
  static Result<std::unique_ptr<Sampler>> start(const SamplerOptions& options, const Clock& clock);
  ~Sampler();
  /// Takes samples. Who knows all processes by then can place every one of them.
  Status begin();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Waits until a ring is half full, `timeout_ms` has passed, a CPU has come or gone, or the kernel
  /// program has met a process or a place that its unwind tables do not know: then it returns true, and what was
  /// drained next should reach them soon. What it misses before `notices_from` wakes nobody until then.
  bool wait(int timeout_ms, MonotonicTime notices_from = {});

  /// Fills `batch` with everything that happened up to now, in the order of time.
  void drain(EventBatch& batch);

  /// Brings timers and rings in line with the CPUs that are online, and reopens those that have gone silent (see
  /// TimerWatch). The next batch has the time that went unsampled as a gap. Call it after
  /// each drain: it looks only now and then where wait() reports CPUs.
  void check_cpus();
  /// Will wait() end whenever something is in a hurry: processes and mappings that are new, CPUs that come or go? False
  /// where the kernel does not tell of them, and while a CPU's timer is to be opened again.
  [[nodiscard]] bool may_rest() const;

  /// The maps of the unwind tables; empty where the kernel refused them and stacks are walked by frame pointers alone.
  [[nodiscard]] std::optional<UnwindMapFds> unwind_maps() const;
  /// Does the kernel's lockdown keep the program from its usual way of reading kernel memory?
  [[nodiscard]] bool reads_by_type() const;

  /// From now on a sample is taken every so many periods of the frequency that was asked for. Each sample says what it
  /// stands for (flamed_sample.weight_ns), and samples of two frequencies do not overlap in time. About half a period
  /// of each CPU's time goes unsampled.
  void stretch_period(unsigned times);

  /// CPU time that one sample stands for.
  [[nodiscard]] std::int64_t period_ns() const;
  /// Does the kernel tell about mapping changes? Otherwise they are read from /proc.
  [[nodiscard]] bool has_side_band() const;

  /// Takes no more samples. What was taken before can still be drained.
  void stop();

  /// Ends a wait() that is under way or the next one. Any thread.
  void wake();

  // -- Any thread ---------------------------------------------------------------------------------------------------

  /// Loads the program that walks stacks by unwind tables, which takes the kernel longer than all else that a start
  /// takes. Until then stacks are walked by frame pointers. Once, and only where there are maps for tables.
  Status load_walk();
  /// Loads the program that walks kernel stacks. Until then the kernel does, which takes it longer. Once.
  Status load_kernel_walk(const Result<flamed_kernel_orc>& orc);
  /// Why kernel stacks are walked by the kernel itself; empty when our program does it.
  [[nodiscard]] std::string why_no_kernel_walk() const;
  /// Why stacks are not walked by unwind tables now; empty when they are.
  [[nodiscard]] std::string why_no_tables() const;
  /// Samples taken by the kernel program since start, over all CPUs.
  [[nodiscard]] std::uint64_t taken() const;
  [[nodiscard]] double frequency_hz() const;      ///< in force
  [[nodiscard]] std::int64_t program_ns() const;  ///< that the kernel program took since start; no system call
  [[nodiscard]] std::size_t cpus() const;         ///< with a live timer and perf buffer
  [[nodiscard]] std::uint64_t reopened() const;   ///< timers that had to be opened again
  [[nodiscard]] SideBandSkipped side_band_skipped() const;
  [[nodiscard]] std::string last_problem() const;  ///< why a CPU is not sampled; empty when all are
  [[nodiscard]] int program_fd() const;            ///< of the BPF program, to ask for its run time

 private:
  class Impl;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamed::daemon
