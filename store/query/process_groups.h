// SPDX-License-Identifier: Apache-2.0
//
// ProcessGroups: the names of the groups that processes belong to: the program, unit, container, user or tree. A local
// of one query; must not outlive the snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/model/profile_options.h"
#include "store/query/process_parents.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

class ProcessGroups {
 public:
  /// `by` is kProgram, kExecutable, kUnit, kContainer, kUser or kTree.
  ProcessGroups(const SnapshotData& snapshot, Group by);

  /// As shown, e.g. "nginx.service" or "[no unit]".
  [[nodiscard]] std::string label(std::uint32_t process) const;

  /// The query that selects the group.
  struct Selector {
    std::string parameter;  ///< of the API, e.g. "unit"; empty if no parameter selects it, such as "[no unit]"
    std::string value;
  };
  [[nodiscard]] Selector selector(std::uint32_t process) const;

 private:
  const SnapshotData& snapshot_;
  const Group by_;
  std::optional<ProcessParents> parents_;  ///< only for kTree
};

}  // namespace flamed::store
