// SPDX-License-Identifier: Apache-2.0
//
// ThreadTable: the threads in slots, each with its process. A thread that changes its name or its user gets a second
// row, so that a row never changes. Writer only, except the views. Must not outlive its Budget or its ProcessTable.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/identity.h"
#include "base/keyed_hash.h"
#include "store/containers/budget.h"
#include "store/containers/id_index.h"
#include "store/containers/shared_array.h"
#include "store/ring/process_table.h"

namespace flamed::store {

/// As long as the kernel's TASK_COMM_LEN, zero-filled.
using ThreadName = std::array<char, 16>;
inline std::string_view text_of(const ThreadName& name) {
  return {name.data(), static_cast<std::size_t>(std::find(name.begin(), name.end(), '\0') - name.begin())};
}

struct ThreadRecord {
  std::uint32_t process : 31 = 0;   ///< in the ProcessTable
  std::uint32_t is_hidden : 1 = 0;  ///< StackSample::is_hidden
  std::int32_t tid = 0;
  ThreadName comm{};
  std::uint32_t owner = kNoUser;  ///< StackSample::owner
};

class ThreadTable {
 public:
  using Records = SharedArray<ThreadRecord, 256>;

  ThreadTable(Budget& budget, ProcessTable& processes)
      : key_(random_hash_key()), processes_(processes), records_(budget), index_(budget) {}

  /// Finds or adds, for a sample of CPU or waiting time. Empty if there is no room.
  std::optional<std::uint32_t> intern(ProcessId process, std::int32_t tid, std::string_view comm, Owner owner,
                                      bool is_waiting, std::uint32_t sequence);

  /// Records that slot `sequence` refers to the thread.
  void mark_used(std::uint32_t thread, std::uint32_t sequence) {
    if (records_.stamp(thread) < sequence) records_.set_stamp(thread, sequence);
  }

  /// Reclaims threads that no slot from `oldest_of(user)` on refers to.
  template <typename F>
  void sweep(F&& oldest_of) {
    records_.for_each([&](std::uint32_t id) {
      if (records_.stamp(id) >= oldest_of(records_[id].owner)) return;
      processes_.remove_thread(records_[id].process);
      records_.release(id);
    });
    rebuild_index();
  }

  [[nodiscard]] const ThreadRecord& operator[](std::uint32_t thread) const { return records_[thread]; }
  /// visit(ThreadRecord)
  template <typename F>
  void for_each(F&& visit) {
    records_.for_each([&](std::uint32_t id) { visit(records_[id]); });
  }

  [[nodiscard]] Records::View view() { return records_.view(); }
  [[nodiscard]] std::size_t size() const { return records_.size(); }

 private:
  void rebuild_index();
  [[nodiscard]] std::uint64_t hash_of(ProcessId process, std::int32_t tid, const ThreadName& comm,
                                      const Owner& owner) const;
  [[nodiscard]] std::uint64_t hash_of(std::uint32_t thread) const;

  const std::uint64_t key_;  ///< see keyed_hash.h
  ProcessTable& processes_;
  Records records_;
  IdIndex index_;
};

}  // namespace flamed::store
