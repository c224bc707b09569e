// SPDX-License-Identifier: Apache-2.0
//
// ProcessMemories: keeps a descriptor of the memory of each process for all threads that have it read, and knows the
// users whose processes' memory does not answer. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/clock.h"
#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/opener/guarded_opener.h"

namespace flamed::daemon {

class ProcessMemories {
 public:
  static constexpr std::size_t kMostOpen = 128;
  /// So many processes of one user, and none of them is read any more: their pages come from a file system that does
  /// not answer.
  static constexpr std::size_t kMostStuck = 3;
  /// A reading of less than this did not wait for a file system.
  static constexpr std::int64_t kStuckNs = kNsPerSecond;

  /// `opener` must outlive it.
  explicit ProcessMemories(symbolizer::GuardedOpener& opener) : opener_(opener) {}

  struct Owner {
    ProcessId process;
    std::uint64_t exec_id = 0;  ///< of its program: another one has other memory
    std::uint32_t user = 0;
  };
  /// Its /proc/PID/mem. stuck_error() if its user's processes are not read any more.
  Result<std::shared_ptr<const Fd>> open(const Owner& owner);

  /// A reading has failed after so long.
  void note_failure(const Owner& owner, const Error& error, std::int64_t took_ns);
  /// Are the user's processes not read any more?
  [[nodiscard]] bool is_stuck(std::uint32_t user) const;
  static Error stuck_error();

 private:
  struct Memory {
    std::uint64_t exec_id = 0;
    std::shared_ptr<const Fd> file;
  };

  symbolizer::GuardedOpener& opener_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::unordered_map<ProcessId, Memory> open_;
  std::deque<ProcessId> opened_;                                  ///< the keys of open_, the oldest first
  std::unordered_map<std::uint32_t, std::set<ProcessId>> stuck_;  ///< by user; at most kMostStuck
};

}  // namespace flamed::daemon
