// SPDX-License-Identifier: Apache-2.0
//
// OffCpuProgram: bpf/waits/off_cpu.bpf.c in the kernel: counts the waits of all threads of some processes, exactly, and
// takes stacks of some of them. It runs at every switch of the machine from attach() to detach(), and never otherwise.
//
// Belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "bpf/off_cpu.h"

namespace flamed::daemon {

class OffCpuProgram {
 public:
  static constexpr std::size_t kMostProcesses = FLAMED_MOST_SELECTED;

  /// Loads it for these processes. It does not run yet. `with_wakers`: also to be called when their threads are woken.
  static Result<OffCpuProgram> load(std::span<const std::int32_t> processes, bool with_wakers);
  OffCpuProgram(OffCpuProgram&&) noexcept;
  ~OffCpuProgram();

  Status attach(const Clock& clock);
  void detach();

  /// A thread that has been waiting since before attach(). False: it has been seen meanwhile.
  bool add_waiting(std::uint32_t tid, const flamed_off_cpu_thread& thread);

  struct Takers {
    std::function<void(const flamed_off_cpu_stack&)> stack;
    std::function<void(const flamed_wait_end&)> end;
    std::function<void(const flamed_waker&)> waker;
  };
  /// Calls them with what has been recorded since the last time, in the order of each thread.
  void drain(const Takers& takers);

  /// A stack for each so long a time of waiting, from now on.
  void set_period(std::int64_t period_ns);
  /// Sums over all CPUs.
  [[nodiscard]] flamed_off_cpu_counts counts() const;
  /// By tid. After detach() they do not change any more.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, flamed_off_cpu_thread>> threads() const;

 private:
  struct Loaded;
  explicit OffCpuProgram(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace flamed::daemon
