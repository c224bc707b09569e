// SPDX-License-Identifier: Apache-2.0
//
// ProfileBuilder: from selections to the tree of an answer: adds up, names, builds, filters. Two compared selections
// become one tree: common nodes are named, sorted and walked once. A local of one query; must not outlive its
// arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "store/index/frame_table.h"
#include "store/index/function_tree.h"
#include "store/index/kept_index.h"
#include "store/index/seen_frames.h"
#include "store/model/profile.h"
#include "store/model/profile_options.h"
#include "store/model/query_budget.h"
#include "store/model/selection.h"
#include "store/query/diff.h"
#include "store/query/grouped_stacks.h"
#include "store/query/profile_tree.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

class ProfileBuilder {
 public:
  ProfileBuilder(const SnapshotData& snapshot, const ProfileOptions& options, FrameNamer& namer, QueryBudget& budget);

  ~ProfileBuilder() { leave_part(); }
  ProfileBuilder(const ProfileBuilder&) = delete;
  ProfileBuilder& operator=(const ProfileBuilder&) = delete;

  Result<Profile> build(const Selection& selection);
  /// Ignores the pruning of `options`: `diff_options` prunes the comparison.
  Result<ProfileDiff> build_diff(const Selection& before, const Selection& after, const DiffOptions& diff_options);

 private:
  using Sides = std::deque<GroupedStacks>;
  /// The outputs for one side.
  struct Described {
    AnswerFacts* facts = nullptr;
    std::vector<ProcessInfo>* processes = nullptr;
  };

  /// The tree of one or two sides, filtered but not pruned. Null: the budget is exhausted.
  std::unique_ptr<ProfileTree> build_tree(Sides& sides, const std::vector<Described>& described);
  [[nodiscard]] std::uint32_t root_frame(const Sides& sides);
  /// Adds the subtrees of the parts with the same label, one for each side that has it, and their share of the quality.
  bool add_parts(ProfileTree& tree, Sides& sides, const std::vector<Described>& described);
  void add_part(ProfileTree& tree, std::size_t side, GroupedStacks& stacks, std::size_t part, Quality& quality);
  std::uint32_t place(ProfileTree& tree, const FunctionTree& functions, std::uint32_t node);
  void leave_part();

  const SnapshotData& snapshot_;
  const ProfileOptions& options_;
  FrameNamer& namer_;
  QueryBudget& budget_;
  KeptIndex::Loan index_;
  SeenFrames seen_;
  std::unique_ptr<FrameTable> frames_;

  std::vector<FunctionTree*> trees_;  ///< by side
  bool same_tree_ = true;             ///< of all sides

  /// By node of the FunctionTree: 1 + node of the answer's tree, in the current part.
  std::vector<std::uint32_t>& placed_;
  std::vector<std::uint32_t> touched_;  ///< indices where placed_ is set
  std::vector<std::uint32_t> path_;     ///< scratch
};

}  // namespace flamed::store
