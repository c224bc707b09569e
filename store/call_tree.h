// SPDX-License-Identifier: Apache-2.0
//
// CallTree: every stack that the store holds, once. A node is a frame below its caller; a stack is its innermost node.
// A truncated stack begins at a marker frame Frame{kTruncatedModule, reason} right below the root, so that the reason
// can be read off the stack later.
//
// The writer's, but for the views that it hands out: those are immutable and may go to any thread. Must not outlive
// its Budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/identity.h"
#include "base/strong_id.h"
#include "store/budget.h"
#include "store/id_index.h"
#include "store/quality.h"
#include "store/shared_array.h"

namespace flamed::store {

using StackId = StrongId<struct StackTag>;
using FrameId = StrongId<struct FrameTag>;

/// The stack without frames. Always there.
inline constexpr StackId kEmptyStack{0};

struct CallNode {
  StackId caller;  ///< the root is its own caller
  FrameId frame;   ///< meaningless in the root
};

class CallTree {
 public:
  using Nodes = SharedArray<CallNode, 2048>;
  using Frames = SharedArray<Frame, 1024>;

  struct View {
    Nodes::View nodes;
    Frames::View frames;
  };

  /// What intern() found: the whole stack, or as many of its outer frames as the budget had room for.
  struct Interned {
    StackId stack;
    bool whole = true;
  };

  explicit CallTree(Budget& budget);
  ~CallTree();
  CallTree(const CallTree&) = delete;
  CallTree& operator=(const CallTree&) = delete;

  /// `frames` outermost first.
  Interned intern(std::optional<Truncation> truncation, std::span<const Frame> frames);

  /// Notes that slot `sequence` (from 1 on) names the stack: it and its callers live for as long as that slot does.
  void mark_used(StackId stack, std::uint32_t sequence);

  /// Reclaims every node that no slot from `oldest_sequence` on names, and the frames that only those named.
  /// Stacks handed out earlier and not marked are invalid afterwards. True when a frame was reclaimed.
  bool sweep(std::uint32_t oldest_sequence);

  /// Modules of all frames, sorted; without the marker.
  [[nodiscard]] std::vector<ModuleId> modules();

  [[nodiscard]] View view() { return {nodes_.view(), frames_.view()}; }
  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] std::size_t frame_count() const { return frames_.size(); }

 private:
  /// Recently seen stacks by a hash of all their frames. Without it each frame of each sample costs two look-ups.
  struct Recent {
    std::uint64_t hash = 0;
    StackId stack = kEmptyStack;
  };

  [[nodiscard]] std::uint64_t hash_of(std::optional<Truncation> truncation, std::span<const Frame> frames) const;
  [[nodiscard]] std::uint64_t hash_of(const Frame& frame) const;
  [[nodiscard]] static std::uint64_t hash_of(const CallNode& node);
  [[nodiscard]] bool is_stack(StackId stack, std::optional<Truncation> truncation, std::span<const Frame> frames) const;
  std::optional<FrameId> intern_frame(const Frame& frame);
  std::optional<StackId> intern_child(StackId caller, const Frame& frame);

  Budget& budget_;
  const std::uint64_t seed_;  ///< processes choose their addresses: they must not be able to choose collisions
  Nodes nodes_;
  IdIndex node_index_;
  Frames frames_;
  IdIndex frame_index_;
  std::vector<Recent> recent_;  ///< direct-mapped, a power of two of them: about 1/256 of the budget
  std::uint32_t sweeps_ = 0;
};

}  // namespace flamed::store
