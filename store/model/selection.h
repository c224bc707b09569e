// SPDX-License-Identifier: Apache-2.0
//
// Selection: which samples a question is about. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace flamed::store {

/// [from, to) on the wall clock.
struct WallWindow {
  WallTime from;
  WallTime to;
};

/// A part of each second of the wall clock: of a heat map's columns, the same rows.
struct SecondPart {
  std::int64_t from_ns = 0;  ///< into the second
  std::int64_t to_ns = kNsPerSecond;

  [[nodiscard]] bool covers(WallTime time) const {
    std::int64_t into = time.ns % kNsPerSecond;
    if (into < 0) into += kNsPerSecond;
    return from_ns <= into && into < to_ns;
  }
};

struct ProcessSelector {
  std::int32_t pid = 0;
  std::optional<std::uint64_t> start_ticks{};  ///< every process that had the pid in the window when empty
};

/// Which part of a stack is asked for. A sample that has no such part is left out.
enum class Side : std::uint8_t {
  kBoth,
  kUser,    ///< user frames only: of a sample in a system call, the code that made it. Without kernel threads
  kKernel,  ///< kernel frames only. Without samples that ran in user space
};

/// An empty list asks for all. Values of one list are alternatives; a sample must fit every list that is not empty.
struct Selection {
  WallWindow window;
  std::vector<ProcessSelector> processes{};
  std::vector<std::int32_t> tids{};
  std::vector<std::string> comms{};        ///< the thread's name, whole; only its first 15 bytes are known
  std::vector<std::string> executables{};  ///< a path when it has a '/', else the path's last component
  std::vector<std::string> units{};        ///< systemd unit; ".service" is implied where there is no '.'
  std::vector<std::string> containers{};   ///< id, or at least the first 12 characters of it
  std::vector<std::string> cgroups{};      ///< path from the root of the hierarchy: it and all below
  std::vector<std::uint32_t> uids{};
  std::vector<ProcessSelector> trees{};  ///< the process and all that it and its children forked
  Side side = Side::kBoth;
  /// Then only time of which samples are kept one by one is used, as in timed_samples().
  std::optional<SecondPart> part{};

  /// Whether some processes or threads may be left out.
  [[nodiscard]] bool is_narrowed() const {
    return !(processes.empty() && tids.empty() && comms.empty() && executables.empty() && units.empty() &&
             containers.empty() && cgroups.empty() && uids.empty() && trees.empty());
  }
};

}  // namespace flamed::store
