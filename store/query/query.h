// SPDX-License-Identifier: Apache-2.0
//
// Queries of a Snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/model/measure.h"
#include "store/model/profile.h"
#include "store/model/profile_options.h"
#include "store/model/query_budget.h"
#include "store/model/selection.h"
#include "store/query/diff.h"
#include "store/query/usage.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

/// The same snapshot for one user of the host: all its answers use only samples of this user's own threads
/// (StackSample::owner), and only processes that were the user's when they were last sampled. It has no losses, which
/// have no process, and no kernel addresses.
Snapshot seen_by(const Snapshot& snapshot, std::uint32_t user);
/// That user; empty if the snapshot has all users.
std::optional<std::uint32_t> only_user(const Snapshot& snapshot);

/// The same snapshot of another measure: waiting time, or both. Waiting time is in samples of kWaitUnitNs each.
/// `hides_idle`: without threads that wait for work (is_idle()).
Snapshot measured(const Snapshot& snapshot, Measure measure, bool hides_idle);

/// The same snapshot with further warnings in all its answers.
Snapshot with_warnings(const Snapshot& snapshot, std::span<const std::string> warnings);
/// Whether waiting time is measured: threads are visited, and were.
bool knows_waits(const Snapshot& snapshot);

/// Of a snapshot of waiting time: the same with threads that wait for work.
Snapshot with_idle(const Snapshot& snapshot);

/// The frames of stored stacks in these modules, which must be sorted: each frame once, in order. May include frames of
/// stacks that are just being freed.
std::vector<Frame> frames_of(const Snapshot& snapshot, std::span<const ModuleId> modules);

/// Is the process in a retained slot or the table of running processes?
bool knows(const Snapshot& snapshot, const ProcessSelector& process);

/// The selected processes, at most `most`, without regard to the selection of threads.
std::vector<ProcessInfo> selected_processes(const Snapshot& snapshot, const Selection& selection, std::size_t most);

/// From the start of the oldest slot to now; empty if nothing is retained.
std::optional<WallWindow> retained_window(const Snapshot& snapshot);

/// CPU time of the machine in the kernel's accounts, as far as it was written with minutes on disk.
struct KeptCpu {
  std::optional<std::uint64_t> ns;  ///< empty: that of some of these minutes is not known
  WallWindow rest;                  ///< the part of the window that memory has; may be empty
};
/// In proportion to the time, where a minute is only partly in the window.
KeptCpu kept_cpu(const Snapshot& snapshot, const WallWindow& window);

/// Whether any retained sample matches the selection, without its window and part of seconds, and `focus`, `ignore` and
/// `root` of the options. Empty: the budget is exhausted, or nothing is retained.
std::optional<bool> matches_ever(const Snapshot& snapshot, Selection selection, ProfileOptions options,
                                 FrameNamer& namer, QueryBudget& budget);

/// Whether some time of the window has single samples; also true if nothing of the window is retained.
bool keeps_single_samples(const Snapshot& snapshot, const WallWindow& window);

/// The flame graph of a selection. Kernel frames are above the user frames that called them. An empty selection gives a
/// root with 0. `quality` is of all selected samples, including those that `focus`, `ignore` and `root` leave out.
Result<Profile> build_profile(const Snapshot& snapshot, const Selection& selection, const ProfileOptions& options,
                              FrameNamer& namer, QueryBudget& budget);

/// Two selections compared. Ignores the pruning of `options`: `diff_options` prunes the comparison.
Result<ProfileDiff> build_diff(const Snapshot& snapshot, const Selection& before, const Selection& after,
                               const ProfileOptions& options, const DiffOptions& diff_options, FrameNamer& namer,
                               QueryBudget& budget);

/// The same without options and limits.
Profile build_profile(const Snapshot& snapshot, const Selection& selection, FrameNamer& namer);

/// CPU use of processes in the window, most first.
std::vector<ProcessUsage> process_usage(const Snapshot& snapshot, const WallWindow& window);

}  // namespace flamed::store
