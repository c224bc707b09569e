// SPDX-License-Identifier: Apache-2.0
//
// SnapshotData: the data of a Snapshot. Immutable; shared by any number of threads; may outlive the Store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/model/gap.h"
#include "store/model/measure.h"
#include "store/model/pending_sample.h"
#include "store/model/wait_reason.h"
#include "store/model/waits_seen.h"
#include "store/ring/call_tree.h"
#include "store/ring/process_table.h"
#include "store/ring/slot.h"
#include "store/ring/slot_sums.h"
#include "store/ring/standing_waits.h"
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
  MonotonicTime since;                                    ///< the start of the data, cuts the first slot
  MonotonicTime until;                                    ///< the end of the data, cuts the open slots
  std::int64_t period_ns = 0;
  std::size_t budget_bytes = 0;
  std::optional<WallTime> budget_dropped_until;               ///< end of the youngest slot dropped for the budget
  std::optional<WallTime> memory_dropped_until;               ///< likewise, dropped because memory was short
  std::vector<GivenUp> given_up;                              ///< from users who had more than a share
  GapLog::View gaps;                                          ///< never null
  std::shared_ptr<const std::vector<PendingSample>> pending;  ///< null: none
  std::optional<std::uint32_t> only_user;                     ///< see seen_by(); empty: all users
  std::vector<std::string> warnings;                          ///< of all its answers, see AnswerFacts
  std::optional<WallTime> on_disk_until;                      ///< end of the youngest minute that was read from disk
  std::optional<WallTime> left_out_from;                      ///< of minutes that had no room: a warning says so
  StandingWaits::Waits::View standing_waits;
  WaitsSeen waits_seen;  ///< until when threads are known to have stayed in these
  DiskAccount disk_account = DiskAccount::kOfNone;
  Measure measure = Measure::kCpu;
  bool hides_idle = false;  ///< see measured()

  /// Is the process visible? With only_user: if it was that user's when it was last sampled.
  [[nodiscard]] bool shows(const ProcessRecord& process) const { return !only_user || is_only_users(process.owner); }
  /// Are samples of the thread visible? With only_user: if the thread was that user's when they were taken, and the
  /// process still is.
  [[nodiscard]] bool shows(const ThreadRecord& thread) const {
    return !only_user || (is_only_users(thread.owner) && shows(processes[thread.process]));
  }

  /// Are the thread's samples visible, but not their stacks?
  [[nodiscard]] bool hides(const ThreadRecord& thread) const { return only_user && thread.is_hidden != 0; }
  /// The process's properties that the viewer may see.
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
