// SPDX-License-Identifier: Apache-2.0
//
// ThreadFilter: which of a snapshot's threads a selection asks for, of those that the snapshot shows. Each thread and
// each process is judged once. A local of one query; must not outlive the snapshot and the selection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/identity.h"
#include "store/model/selection.h"
#include "store/ring/process_table.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

class ThreadFilter {
 public:
  ThreadFilter(const SnapshotData& snapshot, const Selection& selection);

  /// Whether every thread is wanted.
  [[nodiscard]] bool wants_all() const { return wants_all_; }
  /// Of threads that a slot of the snapshot names.
  [[nodiscard]] bool wants(std::uint32_t thread) {
    if (wants_all_) return true;
    if (threads_[thread] == Verdict::kOpen) threads_[thread] = judge_thread(thread) ? Verdict::kYes : Verdict::kNo;
    return threads_[thread] == Verdict::kYes;
  }
  /// Whether threads of one process may be judged differently.
  [[nodiscard]] bool tells_threads_apart() const {
    return snapshot_.only_user || !selection_.tids.empty() || !selection_.comms.empty();
  }
  /// Of processes in use: without what is asked of threads.
  [[nodiscard]] bool wants_process(std::uint32_t process);

 private:
  enum class Verdict : std::uint8_t { kOpen, kYes, kNo };
  struct Known {
    ProcessId id;
    std::uint32_t process = 0;
  };

  [[nodiscard]] bool judge_thread(std::uint32_t thread);
  [[nodiscard]] bool judge_process(const ProcessRecord& record) const;
  /// Whether the process or one that it descends from is a root of Selection::trees.
  [[nodiscard]] bool is_in_tree(std::uint32_t process);
  [[nodiscard]] bool is_root(ProcessId id) const;
  [[nodiscard]] std::uint32_t parent_of(const ProcessRecord& record) const;

  const SnapshotData& snapshot_;
  const Selection& selection_;
  bool wants_all_;
  std::vector<Verdict> threads_;    ///< by place in the ThreadTable
  std::vector<Verdict> processes_;  ///< by place in the ProcessTable
  std::vector<Verdict> in_tree_;    ///< likewise
  std::vector<Known> by_id_;        ///< all processes, sorted; only where trees are asked for
};

/// Whether a process is one that the selector means.
inline bool matches(const ProcessSelector& selector, ProcessId id) {
  return id.pid == selector.pid && (!selector.start_ticks || *selector.start_ticks == id.start_ticks);
}

}  // namespace flamed::store
