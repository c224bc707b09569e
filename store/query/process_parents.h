// SPDX-License-Identifier: Apache-2.0
//
// ProcessParents: which process of a snapshot forked which. A local of one query; must not outlive the snapshot.
#pragma once

#include <cstdint>
#include <vector>

#include "base/identity.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

class ProcessParents {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  explicit ProcessParents(const SnapshotData& snapshot);

  /// Index of the parent in the ProcessTable, or kNone if it is not known.
  [[nodiscard]] std::uint32_t parent_of(const ProcessRecord& record) const;

  /// Index of the process's outermost known ancestor below the init process, below a user's service manager, or below
  /// the kernel's own parent of threads: the root of its tree as people see it. Only visible processes count.
  [[nodiscard]] std::uint32_t top_of(std::uint32_t process) const;

 private:
  struct Known {
    ProcessId id;
    std::uint32_t process = 0;
  };

  const SnapshotData& snapshot_;
  std::vector<Known> by_id_;  ///< all processes, sorted
};

}  // namespace flamed::store
