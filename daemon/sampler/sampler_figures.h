// SPDX-License-Identifier: Apache-2.0
//
// SamplerFigures: how sampling goes, for those who watch it: health, metrics, the budget, the watchdog. No figure takes
// a system call.
//
// The reader thread writes, any thread reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "base/clock.h"
#include "daemon/sampler/kernel_program.h"
#include "daemon/sampler/side_band.h"

namespace flamed::daemon {

class SamplerFigures {
 public:
  /// Both must outlive it.
  SamplerFigures(const KernelProgram& program, const SideBand& side_band, std::int64_t period_ns)
      : program_(program), side_band_(side_band), period_ns_(period_ns) {}

  /// Samples taken by the kernel program since start, over all CPUs.
  [[nodiscard]] std::uint64_t taken() const { return program_.counts().taken; }
  /// CPU time that the kernel program took since start.
  [[nodiscard]] std::int64_t program_ns() const { return static_cast<std::int64_t>(program_.counts().run_ns); }
  /// CPU time that one sample stands for now.
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }
  [[nodiscard]] double frequency_hz() const { return kNsPerSecond / static_cast<double>(period_ns_); }
  /// With a live timer and perf buffer.
  [[nodiscard]] std::size_t cpus() const { return cpus_; }
  /// Timers that had to be opened again.
  [[nodiscard]] std::uint64_t reopened() const { return reopened_; }
  /// Does the kernel tell about mapping changes? Otherwise they are read from /proc.
  [[nodiscard]] bool has_side_band() const { return side_band_.is_told(); }
  [[nodiscard]] SideBandSkipped side_band_skipped() const { return side_band_.skipped(); }
  /// Why a CPU is not sampled; empty when all are.
  [[nodiscard]] std::string last_problem() const {
    const std::lock_guard lock(problem_mutex_);
    return problem_;
  }

  // -- The reader thread --------------------------------------------------------------------------------------------

  void set_period(std::int64_t period_ns) { period_ns_ = period_ns; }
  void set_cpus(std::size_t cpus) { cpus_ = cpus; }
  void count_reopened() { ++reopened_; }
  void set_problem(std::string text) {
    const std::lock_guard lock(problem_mutex_);
    problem_ = std::move(text);
  }

 private:
  const KernelProgram& program_;
  const SideBand& side_band_;
  std::atomic<std::int64_t> period_ns_;
  std::atomic<std::size_t> cpus_ = 0;
  std::atomic<std::uint64_t> reopened_ = 0;
  mutable std::mutex problem_mutex_;
  std::string problem_;  ///< guarded by `problem_mutex_`
};

}  // namespace flamed::daemon
