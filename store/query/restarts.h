// SPDX-License-Identifier: Apache-2.0
//
// Restarts: programs that ended and were started again, by what the process table has. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/model/process_info.h"
#include "store/model/selection.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

/// A main process of a unit or container ended, and another one of the same program began there within half a minute
/// (kLongestPauseNs). Of other processes: the same below one parent, if the program had run for ten seconds. Those that
/// were only seen to wait there, as the `sleep` of a loop, are steps of a script. Processes of one program that run at
/// the same time are a pool, not restarts.
struct Restart {
  std::string what;    ///< the container or unit; below one parent the program
  ProcessInfo before;  ///< `ended` is known
  ProcessInfo after;   ///< `started` is known
};

inline constexpr std::int64_t kLongestPauseNs = 30 * kNsPerSecond;

/// Those whose new process began in the selection's window and is selected, without regard to the selection of threads.
/// Oldest first; of more than `most` the newest. Only of processes that were sampled or have sampled descendants.
std::vector<Restart> restarts(const Snapshot& snapshot, const Selection& selection, std::size_t most);

}  // namespace flamed::store
