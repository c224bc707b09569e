// SPDX-License-Identifier: Apache-2.0
//
// WaitProgram: bpf/waits/waits.bpf.c loaded into the kernel. Each turn() visits threads of this host, in the order of
// their tids, from where the last one ended; threads that are in another wait than at their last visit leave a record.
//
// Belongs to the thread that makes the turns, except records(), which belongs to the reader.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "bpf/visits.h"
#include "daemon/sampler/record_ring.h"

namespace flamed::daemon {

class WaitProgram {
 public:
  static Result<WaitProgram> load();
  WaitProgram(WaitProgram&&) noexcept;
  ~WaitProgram();

  enum class Turn : std::uint8_t {
    kPaused,  ///< its time or its stacks are used up, or the ring of records has no more room
    kEnded,   ///< after the last thread: the next turn begins with the first one
  };
  struct Limits {
    std::int64_t longest_ns = 0;  ///< from the first visit on; one is made in any case
    /// The turn ends with so many threads whose stacks are to be read at once; not 0.
    std::uint32_t new_stacks = std::numeric_limits<std::uint32_t>::max();
    /// So many of those that have waited for long may have theirs read.
    std::uint32_t old_stacks = std::numeric_limits<std::uint32_t>::max();
    bool without_own = false;  ///< leave out the threads of this process and its children
  };
  Result<Turn> turn(const Limits& limits);
  /// The stack of the wait that this thread is in is read later, again.
  void read_again(std::uint32_t tid);

  /// Visits, to be read by read_head() and parse_visit().
  [[nodiscard]] RecordRing& records();
  /// Since it was loaded.
  [[nodiscard]] flamed_visit_counts counts() const;

 private:
  struct Loaded;
  explicit WaitProgram(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace flamed::daemon
