// SPDX-License-Identifier: Apache-2.0
//
// StackBuilder: turns stacks and threads of a snapshot into those of a StackProfile. A local of one query; must not
// outlive its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "store/index/stack_states.h"
#include "store/model/profile_options.h"
#include "store/model/query_budget.h"
#include "store/model/selection.h"
#include "store/query/stack_profile.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

class StackBuilder {
 public:
  StackBuilder(const SnapshotData& snapshot, const Selection& selection, const ProfileOptions& options,
               QueryBudget& budget);

  // -- First, for all stacks ------------------------------------------------------------------------------------------

  /// Records `samples` with the stack. False: they don't have the selected side.
  bool see(StackRef ref, std::uint64_t samples);

  // -- Then, once -----------------------------------------------------------------------------------------------------

  void name(FrameNamer& namer);

  // -- Then, for each count or sample ---------------------------------------------------------------------------------

  struct Built {
    std::uint32_t stack = 0;
    std::optional<Truncation> truncation;
  };
  /// Empty: focus or ignore leave the stack out, or the budget is exhausted.
  std::optional<Built> stack(StackRef ref);
  std::uint32_t thread(std::uint32_t thread);
  /// Adds a row for a new combination of thread, stack and truncation.
  void count(std::uint32_t thread, const Built& built, std::uint64_t samples, std::uint64_t ns);

  // -- Last -----------------------------------------------------------------------------------------------------------

  /// Fills all but the facts, but adds the seen samples to `quality`. The results of stack() and thread() are indices
  /// into `profile`.
  void finish(StackProfile& profile) &&;

 private:
  /// A frame's representation in the answer.
  struct Shown {
    std::uint32_t frame = kNone;  ///< in frames_; kNone: hidden
    bool focused = false;
    bool ignored = false;
  };
  /// The representation of a node of the call-tree.
  struct Placed {
    std::uint32_t node = kNone;  ///< in nodes_; kNone: not known yet
    bool focused = false;
    bool ignored = false;
  };
  static constexpr std::uint32_t kNone = 0xffffffffU;

  [[nodiscard]] Shown show(const Frame& address, const std::shared_ptr<const InlineChain>& chain);
  [[nodiscard]] const Placed& place(StackId stack);

  const SnapshotData& snapshot_;
  const Selection& selection_;
  const ProfileOptions& options_;
  QueryBudget& budget_;
  StackStates states_;
  Quality quality_;
  std::vector<Frame> seen_;             ///< distinct
  std::vector<std::uint32_t> seen_at_;  ///< by FrameId: index into seen_, and into shown_
  std::vector<Shown> shown_;
  std::vector<Placed> placed_;  ///< by node of the call-tree
  std::vector<std::uint32_t> path_;
  std::vector<std::uint32_t> thread_at_;  ///< by index in the ThreadTable: index into threads_
  std::vector<std::uint32_t> process_at_;
  std::vector<std::uint32_t> processes_;  ///< indices into the ProcessTable
  std::vector<StackFrame> frames_;
  std::vector<StackNode> nodes_{1};
  std::vector<StackThread> threads_;
  std::vector<StackCount> counts_;
};

}  // namespace flamed::store
