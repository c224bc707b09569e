// SPDX-License-Identifier: Apache-2.0
//
// ProfileBuilder: builds one Profile. Works in flat arrays indexed by the store's ids: a day of a busy host is millions
// of counts. A local of one query; must not outlive what it is given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/frame_table.h"
#include "store/profile.h"
#include "store/profile_options.h"
#include "store/profile_tree.h"
#include "store/query_budget.h"
#include "store/selection.h"
#include "store/slot_selection.h"
#include "store/snapshot_data.h"
#include "store/stack_states.h"

namespace flamed::store {

class ProfileBuilder {
 public:
  ProfileBuilder(const SnapshotData& snapshot, const Selection& selection, const ProfileOptions& options,
                 QueryBudget& budget);

  Result<Profile> build(FrameNamer& namer);

 private:
  /// One thread's stacks in one slot.
  struct Stacks {
    std::uint32_t key = 0;
    std::int64_t period_ns = 0;
    ThreadStacks stacks;
  };
  struct Total {
    std::uint64_t samples = 0;
    std::uint64_t ns = 0;
  };
  /// How often a key has a stack.
  struct Count {
    StackRef ref;
    Total total;
  };

  /// The selected process when only one pid is asked for, else null.
  [[nodiscard]] const ProcessSelector* only_pid() const;
  [[nodiscard]] Group group() const;
  [[nodiscard]] bool collect();
  [[nodiscard]] bool total_up();
  void form_parts();
  void form_parts_of_single(bool threads);
  void form_named_parts(Group by);
  void group_keys(const std::vector<std::uint32_t>& part_of);
  [[nodiscard]] std::string root_name() const;
  void name_frames(FrameNamer& namer);
  void add_part(ProfileTree& tree, std::uint32_t part, Profile& profile);
  std::uint32_t place(ProfileTree& tree, std::uint32_t node);
  [[nodiscard]] bool is_shown(const Frame& frame) const;
  void describe_processes(Profile& profile);
  void warn(Profile& profile, bool was_cut, bool root_missing);

  const SnapshotData& snapshot_;
  const Selection& selection_;
  const ProfileOptions& options_;
  QueryBudget& budget_;
  SlotSelection slots_;
  StackStates states_;
  FrameTable frame_table_;

  // A "key" is what is told apart when stacks are counted: a process or a thread, in the order of appearance. A part is
  // a subtree of the profile, of one key or of several.
  std::vector<std::uint32_t> keys_;        ///< place in the ProcessTable or the ThreadTable
  std::vector<std::uint64_t> samples_of_;  ///< by key
  std::vector<std::uint32_t> processes_;   ///< with samples
  std::vector<std::string> labels_;        ///< of the parts
  std::vector<Stacks> stacks_;
  std::vector<Count> counts_;  ///< by key: key k is [key_start_[k], key_start_[k + 1])
  std::vector<std::size_t> key_start_;
  std::vector<std::uint32_t> part_keys_;  ///< by part: part p is [part_start_[p], part_start_[p + 1])
  std::vector<std::size_t> part_start_;

  // By node of the call-tree.
  std::vector<Total> totals_;           ///< of the current key or part
  std::vector<std::uint32_t> placed_;   ///< node of the profile, in the current part
  std::vector<std::uint32_t> touched_;  ///< where placed_ is set
  std::vector<std::uint32_t> path_;     ///< scratch

  std::vector<Frame> shown_;                 ///< distinct, as the namer gets them
  std::vector<std::uint32_t> chain_of_;      ///< by FrameId: index into shown_
  std::vector<std::uint32_t> chain_start_;   ///< by index in shown_: into chain_frames_
  std::vector<std::uint32_t> chain_frames_;  ///< of the FrameTable, chain after chain
  std::array<std::uint32_t, kTruncationCount> markers_{};
  std::uint32_t border_ = 0;  ///< the frame "--"
};

}  // namespace flamed::store
