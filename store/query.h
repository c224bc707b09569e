// SPDX-License-Identifier: Apache-2.0
//
// Questions to a Snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "store/profile.h"
#include "store/snapshot.h"

namespace flamed::store {

/// Which process; without it the whole machine.
struct ProcessSelector {
  std::int32_t pid = 0;
  std::optional<std::uint64_t> start_ticks;  ///< every process that had the pid in the window when empty
};

struct Selection {
  WallWindow window;
  std::optional<ProcessSelector> process;
};

/// Has any retained slot, or the table of running processes, ever named this process?
bool knows(const Snapshot& snapshot, const ProcessSelector& process);

/// From the start of the oldest slot to now; empty as long as nothing is retained.
std::optional<WallWindow> retained_window(const Snapshot& snapshot);

/// The flame graph of a selection. Without a process the first level below the root is one node per process, named
/// "comm (pid)", for the 256 that used most; the rest share one node per name, "comm (N processes)". Kernel frames
/// stand above the user frames that led to them. An empty selection gives a root with 0.
Profile build_profile(const Snapshot& snapshot, const Selection& selection, FrameNamer& namer);

/// Who used CPU in the window, most first.
std::vector<ProcessUsage> process_usage(const Snapshot& snapshot, const WallWindow& window);

}  // namespace flamed::store
