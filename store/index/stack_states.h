// SPDX-License-Identifier: Apache-2.0
//
// StackStates: how stacks ended, and which sides they have, computed once for each queried node of the call-tree. Must
// not outlive the call-tree's view.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "store/model/quality.h"
#include "store/model/selection.h"
#include "store/ring/call_tree.h"
#include "store/ring/histogram.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

class StackState {
 public:
  constexpr StackState() = default;
  [[nodiscard]] bool has_user() const {
    return (bits_ & kUser) != 0;
  }  ///< it has user frames, or a mark that they
     ///< are missing
  [[nodiscard]] bool has_kernel() const {
    return (bits_ & kKernel) != 0;
  }  ///< it has kernel frames: it was taken in
     ///< the kernel
  /// Empty: whole.
  [[nodiscard]] std::optional<Truncation> truncation() const {
    const unsigned reason = bits_ >> kReasonShift & kReasonMask;
    if (reason == 0) return std::nullopt;
    return static_cast<Truncation>(reason - 1);
  }

 private:
  friend class StackStates;
  static constexpr unsigned kKnown = 1, kUser = 2, kKernel = 4, kReasonShift = 3, kReasonMask = 31;
  static_assert(kTruncationCount <= kReasonMask);

  explicit constexpr StackState(unsigned bits) : bits_(static_cast<std::uint8_t>(bits)) {}
  [[nodiscard]] bool known() const { return (bits_ & kKnown) != 0; }
  std::uint8_t bits_ = 0;
};

class StackStates {
 public:
  explicit StackStates(const SnapshotData& snapshot) : StackStates(snapshot.tree) {}
  explicit StackStates(const CallTree::View& tree) : tree_(tree) { fit(); }

  /// To be called when the view's nodes have changed.
  void fit() {
    states_.resize(std::max<std::size_t>(tree_.nodes.limit(), 1));
    states_[kEmptyStack.value] = StackState(StackState::kKnown);
  }
  void forget() {
    states_.clear();
    fit();
  }
  [[nodiscard]] bool is_known(std::uint32_t node) const { return node < states_.size() && states_[node].known(); }

  [[nodiscard]] StackState of(StackId stack) {
    return of(stack, [](std::uint32_t, const Frame&) {});
  }
  /// Calls see(FrameId's number, frame) for each node on its first visit, except marks of truncation.
  template <typename F>
  StackState of(StackId stack, F&& see) {
    if (states_[stack.value].known()) return states_[stack.value];
    path_.clear();
    std::uint32_t node = stack.value;
    for (; !states_[node].known(); node = tree_.nodes[node].caller.value) path_.push_back(node);
    StackState state = states_[node];
    for (std::size_t i = path_.size(); i-- > 0;) {
      const FrameId id = tree_.nodes[path_[i]].frame;
      const Frame& frame = tree_.frames[id.value];
      state = below(state, frame);
      states_[path_[i]] = state;
      if (frame.module != kTruncatedModule) see(id.value, frame);
    }
    return state;
  }
  /// A cut stack is truncated because the store was full.
  [[nodiscard]] std::optional<Truncation> truncation_of(StackRef ref) {
    return ref.cut ? Truncation::kStoreFull : of(ref.stack).truncation();
  }
  /// Whether the sample has the side. The missing part of a cut stack counts as user frames unless the stack has kernel
  /// frames.
  [[nodiscard]] bool has(StackRef ref, Side side) {
    if (side == Side::kBoth) return true;
    const StackState state = of(ref.stack);
    return side == Side::kUser ? state.has_user() || (ref.cut && !state.has_kernel()) : state.has_kernel();
  }
  void count(StackRef ref, std::uint64_t samples, Quality& quality) {
    if (const std::optional<Truncation> reason = truncation_of(ref)) {
      quality.truncated[static_cast<std::size_t>(*reason)] += samples;
    } else {
      quality.whole += samples;
    }
  }

 private:
  static StackState below(StackState caller, const Frame& frame);

  const CallTree::View& tree_;
  std::vector<StackState> states_;   ///< by node
  std::vector<std::uint32_t> path_;  ///< scratch
};

}  // namespace flamed::store
