// SPDX-License-Identifier: Apache-2.0
//
// JvmAsker: makes sampled JVMs write their perf maps, on a thread of its own, since that may take seconds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <unordered_map>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/identity.h"
#include "symbolizer/process/module_table.h"

namespace flamed::daemon {

class JvmAsker {
 public:
  JvmAsker(symbolizer::ModuleTable& modules, const Clock& clock) : modules_(modules), clock_(clock), queue_(kQueue) {}

  /// Queues the process, unless it was asked in the last minute, or failed in the last ten. True if queued.
  bool want(const ProcessId& jvm);

  /// The thread's function, until `stop` is requested.
  void run(const std::stop_token& stop);

  struct Stats {
    std::uint64_t asked = 0;
    std::uint64_t failed = 0;
  };
  [[nodiscard]] Stats stats() const { return {asked_.load(), failed_.load()}; }

 private:
  static constexpr std::size_t kQueue = 64;

  void ask(const ProcessId& jvm);

  symbolizer::ModuleTable& modules_;
  const Clock& clock_;
  BoundedQueue<ProcessId> queue_;
  std::atomic<std::uint64_t> asked_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
  std::mutex mutex_;  ///< guards the members below
  std::unordered_map<ProcessId, MonotonicTime> not_before_;
};

}  // namespace flamed::daemon
