// SPDX-License-Identifier: Apache-2.0
//
// ShownFrames: what the call-tree's frames are shown as in one answer. All that its stacks have are noted first, named
// together, and then looked up by their number. A local of one query; must not outlive what it is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "store/frame_table.h"
#include "store/profile.h"
#include "store/selection.h"
#include "store/snapshot_data.h"

namespace flamed::store {

/// Whether a side has the frame.
[[nodiscard]] inline bool shows(Side side, const Frame& frame) {
  return side == Side::kBoth || (frame.module == kKernelModule) == (side == Side::kKernel);
}

class ShownFrames {
 public:
  ShownFrames(const SnapshotData& snapshot, FrameTable& table) : table_(table), at_(snapshot.tree.frames.limit(), 0) {}

  /// A side that stacks are shown of; before they are noted.
  void show(Side side) {
    user_ = user_ || side != Side::kKernel;
    kernel_ = kernel_ || side != Side::kUser;
  }
  /// Notes a frame by its number in the call-tree, if a side has it.
  void see(std::uint32_t id, const Frame& frame) {
    if (at_[id] != 0 || !(frame.module == kKernelModule ? kernel_ : user_)) return;
    seen_.push_back(frame);
    at_[id] = static_cast<std::uint32_t>(seen_.size());
  }
  /// Names what was noted, once.
  void name(FrameNamer& namer);
  /// Frames of the FrameTable, outermost first; of a frame that was noted.
  [[nodiscard]] std::span<const std::uint32_t> chain(FrameId id) const {
    const std::uint32_t at = at_[id.value];
    if (at == 0) return {};
    return {frames_.data() + start_[at - 1], frames_.data() + start_[at]};
  }

 private:
  FrameTable& table_;
  bool user_ = false;
  bool kernel_ = false;
  std::vector<std::uint32_t> at_;      ///< by FrameId: 1 + index into seen_; 0: not noted
  std::vector<Frame> seen_;            ///< distinct, as the namer gets them
  std::vector<std::uint32_t> start_;   ///< by index in seen_: into frames_
  std::vector<std::uint32_t> frames_;  ///< of the FrameTable, chain after chain
};

}  // namespace flamed::store
