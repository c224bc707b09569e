// SPDX-License-Identifier: Apache-2.0
//
// ProcessDetails: what /proc says of a process and no event does: its owner, its command line, its control group.
//
// Lives on the ingest thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/identity.h"
#include "symbolizer/process/command_line.h"

namespace flamed::symbolizer {

/// A control group by its path below the root of its hierarchy, made safe to print, and what that says.
struct Cgroup {
  std::string path;
  std::string unit;
  std::string container;
};

struct ProcessDetail {
  std::optional<std::uint32_t> uid;  ///< effective
  std::string command_line;
};

class ProcessDetails {
 public:
  /// `proc` is where procfs is mounted, `cgroups` the unified hierarchy.
  explicit ProcessDetails(CommandLines command_lines, std::string proc = "/proc",
                          std::string cgroups = "/sys/fs/cgroup")
      : command_lines_(command_lines), proc_(std::move(proc)), cgroups_(std::move(cgroups)) {}

  /// Reads status, cmdline and, last, stat, which says whose the others were: nine system calls, six when command lines
  /// are off. Empty when the process is gone.
  [[nodiscard]] std::optional<ProcessDetail> read(ProcessId id) const;
  /// Reads cmdline alone, three system calls, none when command lines are off. For whoever hears of the process's end,
  /// and then drops what was read after it: it can be that of the pid's next owner. Empty when the pid is
  /// nobody's.
  [[nodiscard]] std::string read_command_line(std::int32_t pid) const;

  /// The cgroup with this id, as its samples name it. Known ones cost nothing; for others the process, which was seen
  /// in it, is asked: four system calls. Null when that can't be told.
  std::shared_ptr<const Cgroup> cgroup(std::uint64_t cgroup_id, ProcessId id);

 private:
  [[nodiscard]] bool is_still(ProcessId id) const;

  /// A host that starts a scope for every command makes new ones all day: dropped as a whole when full.
  static constexpr std::size_t kMostCgroups = 16'384;

  const CommandLines command_lines_;
  const std::string proc_;
  const std::string cgroups_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Cgroup>> by_id_;
};

}  // namespace flamed::symbolizer
