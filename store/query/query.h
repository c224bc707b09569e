// SPDX-License-Identifier: Apache-2.0
//
// Questions to a Snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "store/model/profile.h"
#include "store/model/profile_options.h"
#include "store/model/query_budget.h"
#include "store/model/selection.h"
#include "store/query/diff.h"
#include "store/query/usage.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

/// The same snapshot for one user of the host: whatever is asked of it, the answer is made of samples that were taken
/// of this user's own threads (StackSample::owner), of processes that were theirs when they were last sampled, and of
/// nothing else. Losses have no process, so they are not told; nor are addresses in the kernel.
Snapshot seen_by(const Snapshot& snapshot, std::uint32_t user);
/// That user; empty where everything is told.
std::optional<std::uint32_t> only_user(const Snapshot& snapshot);

/// What stored stacks have of these modules, which are sorted: each frame once, in order. Frames of stacks that are
/// just being freed may be among them.
std::vector<Frame> frames_of(const Snapshot& snapshot, std::span<const ModuleId> modules);

/// Has any retained slot, or the table of running processes, ever named this process?
bool knows(const Snapshot& snapshot, const ProcessSelector& process);

/// What is known of the processes that a selection means, whatever it asks of threads, at most `most`.
std::vector<ProcessInfo> selected_processes(const Snapshot& snapshot, const Selection& selection, std::size_t most);

/// From the start of the oldest slot to now; empty as long as nothing is retained.
std::optional<WallWindow> retained_window(const Snapshot& snapshot);

/// Whether samples of any time that is retained fit the selection, whatever its window and part of seconds, and
/// `focus`, `ignore` and `root` of the options. Empty: the budget has run out, or nothing is retained.
std::optional<bool> matches_ever(const Snapshot& snapshot, Selection selection, ProfileOptions options,
                                 FrameNamer& namer, QueryBudget& budget);

/// Whether of some time in the window samples are kept one by one; also where nothing is retained of it.
bool keeps_single_samples(const Snapshot& snapshot, const WallWindow& window);

/// The flame graph of a selection. Kernel frames stand above the user frames that led to them. An empty selection
/// gives a root with 0. `quality` is that of all selected samples, also of those that `focus`, `ignore` and `root`
/// leave out.
Result<Profile> build_profile(const Snapshot& snapshot, const Selection& selection, const ProfileOptions& options,
                              FrameNamer& namer, QueryBudget& budget);

/// Two selections compared. Of `options`, pruning does not apply: `diff_options` prunes what was compared.
Result<ProfileDiff> build_diff(const Snapshot& snapshot, const Selection& before, const Selection& after,
                               const ProfileOptions& options, const DiffOptions& diff_options, FrameNamer& namer,
                               QueryBudget& budget);

/// The same without options and limits.
Profile build_profile(const Snapshot& snapshot, const Selection& selection, FrameNamer& namer);

/// Who used CPU in the window, most first.
std::vector<ProcessUsage> process_usage(const Snapshot& snapshot, const WallWindow& window);

}  // namespace flamed::store
