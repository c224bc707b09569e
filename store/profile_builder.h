// SPDX-License-Identifier: Apache-2.0
//
// ProfileBuilder: from selections to the tree of an answer: adds up, names, builds, filters. Of two selections that are
// compared it makes one tree: what both have is named, sorted and walked once. A local of one query; must not outlive
// what it is given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "store/diff.h"
#include "store/frame_table.h"
#include "store/grouped_stacks.h"
#include "store/profile.h"
#include "store/profile_options.h"
#include "store/profile_tree.h"
#include "store/query_budget.h"
#include "store/selection.h"
#include "store/shown_frames.h"
#include "store/snapshot_data.h"
#include "store/stack_states.h"

namespace flamed::store {

class ProfileBuilder {
 public:
  ProfileBuilder(const SnapshotData& snapshot, const ProfileOptions& options, QueryBudget& budget);

  Result<Profile> build(const Selection& selection, FrameNamer& namer);
  /// Of `options`, pruning does not apply: `diff_options` prunes what was compared.
  Result<ProfileDiff> build_diff(const Selection& before, const Selection& after, const DiffOptions& diff_options,
                                 FrameNamer& namer);

 private:
  using Sides = std::deque<GroupedStacks>;
  /// Where to say what is known of a side.
  struct Described {
    AnswerFacts* facts = nullptr;
    std::vector<ProcessInfo>* processes = nullptr;
  };

  /// The tree of one or two sides, filtered but not pruned. Null: the budget has run out.
  std::unique_ptr<ProfileTree> build_tree(Sides& sides, FrameNamer& namer, const std::vector<Described>& described);
  [[nodiscard]] std::uint32_t root_frame(const Sides& sides);
  void intern_markers();
  void add_part(ProfileTree& tree, std::size_t side, GroupedStacks& stacks, std::size_t part, Quality& quality);
  std::uint32_t place(ProfileTree& tree, Side side, std::uint32_t node);

  const SnapshotData& snapshot_;
  const ProfileOptions& options_;
  QueryBudget& budget_;
  StackStates states_;
  FrameTable frame_table_;
  ShownFrames shown_;
  std::array<std::uint32_t, kTruncationCount> markers_{};
  std::uint32_t border_ = 0;  ///< the frame "--"

  // By node of the call-tree.
  std::vector<std::uint32_t> placed_;   ///< node of the answer's tree, in the current part
  std::vector<std::uint32_t> touched_;  ///< where placed_ is set
  std::vector<std::uint32_t> path_;     ///< scratch
};

}  // namespace flamed::store
