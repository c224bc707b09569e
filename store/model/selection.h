// SPDX-License-Identifier: Apache-2.0
//
// Selection: the samples that a query is about. A plain value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/model/process_info.h"

namespace flamed::store {

/// [from, to) on the wall clock.
struct WallWindow {
  WallTime from;
  WallTime to;
};

/// What an answer needs to tell apart. What is on disk may then be read from sums.
struct Detail {
  /// Processes and sides alone: no threads, stacks or single samples.
  bool only_processes = false;
  /// Then: short-lived processes are told apart in whatever window, since some may be selected.
  bool each_process = false;
  /// Likewise: times that are closer than this need not be told apart.
  std::int64_t step_ns = 0;
  /// Threads or single samples: of a long window minutes are read, as many as there is room for.
  bool only_minutes = false;
};

/// A part of each second of the wall clock, such as some rows of a heat map.
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
  std::optional<std::uint64_t> start_ticks{};  ///< empty: every process that had the pid in the window
};

/// The selected part of stacks. A sample without that part is left out.
enum class Side : std::uint8_t {
  kBoth,
  kUser,    ///< only user frames: for a sample in a system call, its caller. Without kernel threads
  kKernel,  ///< only kernel frames. Without samples that ran in user space
};

/// An empty list selects all. Values of one list are alternatives; a sample must match every list that is not empty.
struct Selection {
  WallWindow window;
  std::vector<ProcessSelector> processes{};
  std::vector<std::int32_t> tids{};
  std::vector<std::string> comms{};        ///< the whole name of the thread; the kernel keeps 15 bytes of it
  std::vector<std::string> executables{};  ///< a path if it has a '/', else the path's last component
  std::vector<std::string> units{};        ///< systemd unit; ".service" is implied if there is no '.'
  /// Id, or at least the first 12 characters of it; its name; a pod, by name or id; or what runs it: docker, podman,
  /// containerd, cri-o, kubernetes, lxc, systemd-nspawn.
  std::vector<std::string> containers{};
  std::vector<std::string> cgroups{};  ///< path from the root of the hierarchy: it and all below
  std::vector<std::uint32_t> uids{};
  std::vector<ProcessSelector> trees{};  ///< the process and all its descendants
  /// Only processes that it accepts; empty: all. Called once for each process, on the query's thread.
  std::function<bool(const ProcessInfo&)> accepts{};
  Side side = Side::kBoth;
  /// If set, only time with single samples is used, as in timed_samples().
  std::optional<SecondPart> part{};

  /// Whether some processes or threads may be left out.
  [[nodiscard]] bool is_narrowed() const {
    return !(processes.empty() && tids.empty() && comms.empty() && executables.empty() && units.empty() &&
             containers.empty() && cgroups.empty() && uids.empty() && trees.empty() && !accepts);
  }
};

}  // namespace flamed::store
