// SPDX-License-Identifier: Apache-2.0
//
// MemoryWatch: how near the daemon's control group is to its memory limit, and how much memory to free so that it stays
// below. Belongs to the main thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.h"

namespace flamed::daemon {

/// The directory of the group that limits a process's memory, from the text of /proc/PID/cgroup; `root` is where
/// control groups are mounted. For both versions. Empty if there is none.
std::optional<std::string> find_memory_group(std::string_view proc_cgroup, const std::string& root);

/// The group of this process.
std::optional<std::string> own_memory_group();

class MemoryWatch {
 public:
  struct Reading {
    std::uint64_t used_bytes = 0;  ///< without the page cache of files, which the kernel reclaims by itself
    std::uint64_t limit_bytes =
        0;  ///< MemoryHigh, at which the kernel slows the group down, or MemoryMax if that is less
  };

  /// Without a group, or a limit of the group, there is never anything to free. The group's files are opened once:
  /// opening them is most of the cost of reading them.
  explicit MemoryWatch(const std::optional<std::string>& group);

  /// Empty without a limit.
  [[nodiscard]] std::optional<Reading> read() const;

  /// Above 15/16 of the limit: the bytes to free to get down to 7/8 of it. Else 0.
  static std::size_t to_give_back(const Reading& reading);

 private:
  std::string stat_path_;
  Fd used_;
  std::vector<Fd> limits_;  ///< those that exist
  bool is_second_version_ = false;
};

}  // namespace flamed::daemon
