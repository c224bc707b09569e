// SPDX-License-Identifier: Apache-2.0
//
// ProcessInfo: the properties of a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/identity.h"

namespace flamed::store {

/// (uid_t)-1, which no user has.
inline constexpr std::uint32_t kNoUser = 0xffffffffU;

struct ProcessInfo {
  ProcessId id;
  std::string comm;        ///< the main thread's last known name
  std::string executable;  ///< path in the process's own mount namespace; empty for kernel threads or unknown
  std::uint64_t cgroup_id = 0;
  std::optional<WallTime> started;
  std::optional<WallTime> ended;  ///< empty while it runs or if not known

  /// The process that forked it, kept after that one has ended, so that its descendants can be found. 0: not known.
  std::int32_t parent_pid = 0;
  std::uint64_t parent_start_ticks = 0;  ///< of the parent; 0: not known
  std::optional<std::uint32_t> uid{};    ///< effective, in the host's user namespace
  std::string command_line{};            ///< one line, made safe to print; empty if not known or not kept
  std::string cgroup{};                  ///< path below the root of cgroup v2, "/" for the root; empty: not known
  std::string unit{};                    ///< of systemd, from the cgroup: "nginx.service"; may be empty
  std::string container{};               ///< from the cgroup, with its name: see container_text.h; may be empty
};

}  // namespace flamed::store
