// SPDX-License-Identifier: Apache-2.0
//
// ThreadFilter: which of a snapshot's visible threads a selection has. Evaluates each thread and each process once. A
// local of one query; must not outlive the snapshot and the selection.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/identity.h"
#include "store/model/selection.h"
#include "store/query/process_parents.h"
#include "store/ring/process_table.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

class ThreadFilter {
 public:
  ThreadFilter(const SnapshotData& snapshot, const Selection& selection);

  /// Whether every thread is selected.
  [[nodiscard]] bool wants_all() const { return wants_all_; }
  /// For threads in a slot of the snapshot.
  [[nodiscard]] bool wants(std::uint32_t thread) {
    if (wants_all_) return true;
    if (threads_[thread] == Verdict::kOpen) threads_[thread] = judge_thread(thread) ? Verdict::kYes : Verdict::kNo;
    return threads_[thread] == Verdict::kYes;
  }
  /// Whether only some threads of a process may be selected.
  [[nodiscard]] bool tells_threads_apart() const {
    return snapshot_.only_user || !selection_.tids.empty() || !selection_.comms.empty();
  }
  /// Whether the selection of thread ids, if there is one, has this one.
  [[nodiscard]] bool wants_thread_id(std::int32_t tid) const {
    return selection_.tids.empty() ||
           std::find(selection_.tids.begin(), selection_.tids.end(), tid) != selection_.tids.end();
  }
  /// For used processes, without regard to the selection of threads.
  [[nodiscard]] bool wants_process(std::uint32_t process);

 private:
  enum class Verdict : std::uint8_t { kOpen, kYes, kNo };

  [[nodiscard]] bool judge_thread(std::uint32_t thread);
  [[nodiscard]] bool judge_process(const ProcessRecord& record) const;
  /// Whether the process or one of its ancestors is a root of Selection::trees.
  [[nodiscard]] bool is_in_tree(std::uint32_t process);
  [[nodiscard]] bool is_root(ProcessId id) const;

  const SnapshotData& snapshot_;
  const Selection& selection_;
  bool wants_all_;
  std::vector<Verdict> threads_;           ///< by index in the ThreadTable
  std::vector<Verdict> processes_;         ///< by index in the ProcessTable
  std::vector<Verdict> in_tree_;           ///< likewise
  std::optional<ProcessParents> parents_;  ///< only if trees are selected
};

/// Whether the selector selects the process.
inline bool matches(const ProcessSelector& selector, ProcessId id) {
  return id.pid == selector.pid && (!selector.start_ticks || *selector.start_ticks == id.start_ticks);
}

}  // namespace flamed::store
