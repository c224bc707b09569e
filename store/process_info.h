// SPDX-License-Identifier: Apache-2.0
//
// What is known of a process beside its samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/identity.h"

namespace flamed::store {

struct ProcessInfo {
  ProcessId id;
  std::string comm;        ///< the main thread's name, as last seen
  std::string executable;  ///< path in the process's own mount namespace; empty for kernel threads or unknown
  std::uint64_t cgroup_id = 0;
  std::optional<WallTime> started;
  std::optional<WallTime> ended;  ///< empty while it runs, as far as known
};

}  // namespace flamed::store
