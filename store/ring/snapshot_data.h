// SPDX-License-Identifier: Apache-2.0
//
// SnapshotData: what a Snapshot holds. Immutable; shared by any number of threads; independent of the Store's life.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "store/model/gap.h"
#include "store/ring/call_tree.h"
#include "store/ring/process_table.h"
#include "store/ring/slot.h"
#include "store/ring/slot_sums.h"
#include "store/ring/thread_table.h"
#include "store/ring/user_shares.h"

namespace flamed::store {

class SnapshotData {
 public:
  CallTree::View tree;
  ThreadTable::Records::View threads;
  ProcessTable::Records::View processes;
  std::shared_ptr<const std::vector<SealedSlot>> sealed;  ///< oldest first; never null
  std::vector<OpenSlot::View> open;                       ///< oldest first, all younger than the sealed ones
  std::shared_ptr<SlotSums> sums;                         ///< of runs of sealed slots; never null
  std::shared_ptr<SlotSums> side_sums;                    ///< by side, of single ones; never null
  MonotonicTime since;                                    ///< nothing here is older: cuts the first slot's start
  MonotonicTime until;                                    ///< nothing here is younger: cuts the open slots' ends
  std::int64_t period_ns = 0;
  std::size_t budget_bytes = 0;
  std::optional<WallTime> budget_dropped_until;  ///< end of the youngest slot that was dropped for the budget
  std::optional<WallTime> memory_dropped_until;  ///< likewise because memory was short
  std::vector<GivenUp> given_up;                 ///< by users who had more than a share
  GapLog::View gaps;                             ///< never null
  std::optional<std::uint32_t> only_user;        ///< see seen_by(); empty: everything may be told

  /// May what is known of the process be told? Where only one user may look: if it was theirs when it was last sampled.
  [[nodiscard]] bool shows(const ProcessRecord& process) const { return !only_user || is_only_users(process.owner); }
  /// May samples of the thread be told? If it was theirs when they were taken, and the process still is.
  [[nodiscard]] bool shows(const ThreadRecord& thread) const {
    return !only_user || (is_only_users(thread.owner) && shows(processes[thread.process]));
  }

  /// May the viewer know no more of the thread's stacks than that there were some?
  [[nodiscard]] bool hides(const ThreadRecord& thread) const { return only_user && thread.is_hidden != 0; }
  /// What the viewer may know of the process.
  [[nodiscard]] ProcessInfo info_of(const ProcessRecord& process) const {
    ProcessInfo info = process.info();
    if (hides_program_of(process)) info.executable.clear();
    return info;
  }
  [[nodiscard]] bool hides_program_of(const ProcessRecord& process) const { return only_user && process.is_hidden; }

 private:
  [[nodiscard]] bool is_only_users(std::uint32_t owner) const { return owner == *only_user && owner != kNoUser; }
};

}  // namespace flamed::store
