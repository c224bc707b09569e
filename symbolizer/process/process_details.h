// SPDX-License-Identifier: Apache-2.0
//
// ProcessDetails: the properties of a process that only /proc has: its owner, its command line, its control group.
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
#include "symbolizer/process/cgroup_tree.h"
#include "symbolizer/process/command_line.h"

namespace flamed::symbolizer {

/// A control group: its path below the root of its hierarchy, made safe to print, and the unit and container in it.
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
  /// `proc` is where procfs is mounted.
  explicit ProcessDetails(CommandLines command_lines, std::string proc = "/proc",
                          CgroupTree cgroups = {"/sys/fs/cgroup"})
      : command_lines_(command_lines), proc_(std::move(proc)), cgroups_(std::move(cgroups)) {}

  /// Reads status, cmdline and, last, stat, which shows that the pid is still the same process: nine system calls, six
  /// if command lines are off. Empty if the process is gone.
  [[nodiscard]] std::optional<ProcessDetail> read(ProcessId id) const;
  /// Reads only cmdline, with three system calls, none if command lines are off. For callers that learn of the
  /// process's end, and then drop a result that was read after it, which can be another process's with the same pid.
  /// Empty if there is no such pid.
  [[nodiscard]] std::string read_command_line(std::int32_t pid) const;

  /// The cgroup with this id, from samples. Known ones cost nothing; for others /proc of the process, which was sampled
  /// in it, is read: four system calls. Null if not known.
  std::shared_ptr<const Cgroup> cgroup(std::uint64_t cgroup_id, ProcessId id);

 private:
  [[nodiscard]] bool is_still(ProcessId id) const;

  /// A host that starts a scope for every command creates new ones all day: the cache is cleared when full.
  static constexpr std::size_t kMostCgroups = 16'384;

  const CommandLines command_lines_;
  const std::string proc_;
  const CgroupTree cgroups_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Cgroup>> by_id_;
};

}  // namespace flamed::symbolizer
