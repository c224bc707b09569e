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

/// (uid_t)-1, which is nobody's.
inline constexpr std::uint32_t kNoUser = 0xffffffffU;

struct ProcessInfo {
  ProcessId id;
  std::string comm;        ///< the main thread's name, as last seen
  std::string executable;  ///< path in the process's own mount namespace; empty for kernel threads or unknown
  std::uint64_t cgroup_id = 0;
  std::optional<WallTime> started;
  std::optional<WallTime> ended;  ///< empty while it runs, as far as known

  /// Who started it: known even when that one has ended since, so that what it started can be found. 0: not known.
  std::int32_t parent_pid = 0;
  std::uint64_t parent_start_ticks = 0;  ///< of the parent; 0: not known
  std::optional<std::uint32_t> uid{};    ///< effective, as the host's user namespace counts
  std::string command_line{};            ///< one line, made safe to print; empty where not known or not kept
  std::string cgroup{};                  ///< path below the root of cgroup v2, "/" for the root; empty: not known
  std::string unit{};                    ///< of systemd, from the cgroup: "nginx.service"; may be empty
  std::string container{};               ///< from the cgroup: an id of 64 hex digits or a name; may be empty
};

}  // namespace flamed::store
