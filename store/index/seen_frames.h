// SPDX-License-Identifier: Apache-2.0
//
// SeenFrames: the frames of the call-tree in the stacks of one answer. A local of one query; must not outlive the
// call-tree's view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "store/model/selection.h"
#include "store/ring/call_tree.h"

namespace flamed::store {

/// Whether a side has the frame.
[[nodiscard]] inline bool shows(Side side, const Frame& frame) {
  return side == Side::kBoth || (frame.module == kKernelModule) == (side == Side::kKernel);
}

class SeenFrames {
 public:
  explicit SeenFrames(const CallTree::View& tree)
      : tree_(tree), nodes_(tree.nodes.limit() / 64 + 1), frames_(tree.frames.limit() / 64 + 1) {
    nodes_[0] = 1;  // the root has no frame
  }

  /// Adds a shown side of stacks; call it before see().
  void show(Side side) {
    user_ = user_ || side != Side::kKernel;
    kernel_ = kernel_ || side != Side::kUser;
  }
  /// Prefetches the stack's node for see().
  void prefetch(StackId stack) const { __builtin_prefetch(&tree_.nodes[stack.value]); }
  /// Records the stack's frames on the shown sides, except marks of truncation.
  void see(StackId stack) {
    for (std::uint32_t node = stack.value; !test_and_set(nodes_, node);) {
      const CallNode& call = tree_.nodes[node];
      node = call.caller.value;
      if (test_and_set(frames_, call.frame.value)) continue;
      const Frame& frame = tree_.frames[call.frame.value];
      if (frame.module == kTruncatedModule || !(frame.module == kKernelModule ? kernel_ : user_)) continue;
      ids_.push_back(call.frame.value);
    }
  }
  /// Numbers of the frames, each once.
  [[nodiscard]] std::span<const std::uint32_t> ids() const { return ids_; }

 private:
  static bool test_and_set(std::vector<std::uint64_t>& bits, std::uint32_t i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    const bool was_set = (bits[i / 64] & bit) != 0;
    bits[i / 64] |= bit;
    return was_set;
  }

  const CallTree::View& tree_;
  bool user_ = false;
  bool kernel_ = false;
  std::vector<std::uint64_t> nodes_;   ///< by StackId
  std::vector<std::uint64_t> frames_;  ///< by FrameId
  std::vector<std::uint32_t> ids_;
};

}  // namespace flamed::store
