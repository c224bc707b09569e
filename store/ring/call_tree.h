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
#include "store/containers/budget.h"
#include "store/containers/generations.h"
#include "store/containers/id_index.h"
#include "store/containers/shared_array.h"
#include "store/model/quality.h"
#include "store/ring/user_shares.h"

namespace flamed::store {

using StackId = StrongId<struct StackTag>;
using FrameId = StrongId<struct FrameTag>;

/// The stack without frames. Always there.
inline constexpr StackId kEmptyStack{0};

/// A Frame in 12 bytes instead of 16.
class PackedFrame {
 public:
  PackedFrame() = default;
  explicit PackedFrame(const Frame& frame)
      : module(frame.module),
        offset_low_(static_cast<std::uint32_t>(frame.offset)),
        offset_high_(static_cast<std::uint32_t>(frame.offset >> 32)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): it is one
  operator Frame() const { return {module, (std::uint64_t{offset_high_} << 32) | offset_low_}; }

  friend bool operator==(const PackedFrame&, const PackedFrame&) = default;

  ModuleId module;

 private:
  std::uint32_t offset_low_ = 0, offset_high_ = 0;
};
static_assert(sizeof(PackedFrame) == 12);

struct CallNode {
  StackId caller;  ///< the root is its own caller
  FrameId frame;   ///< meaningless in the root
};

class CallTree {
 public:
  /// When the node was used last, and by whom.
  using NodeStamp = std::uint16_t;
  using Nodes = SharedArray<CallNode, 2048, NodeStamp>;
  using Frames = SharedArray<PackedFrame, 1024, NoStamp>;

  struct View {
    Nodes::View nodes;
    Frames::View frames;
    StackId hidden = kEmptyStack;  ///< what is shown in place of a stack that the viewer may not see
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

  /// Notes that slot `sequence` names the stack, as the user's: it and its callers live for as long as that slot does.
  void mark_used(StackId stack, std::uint32_t sequence, UserTag user = kSeveral);

  /// Notes that slot `sequence` has stacks that not everybody may see.
  void mark_hidden(std::uint32_t sequence);

  /// What stands in slots for stacks that were given up for Truncation::kUserShare. It is entered with the first call,
  /// and stays. Empty: there is no room.
  std::optional<StackId> given_up();

  /// There is room for few more nodes, whatever the budget says.
  [[nodiscard]] bool is_tight() const { return node_index_.is_tight() || frame_index_.is_tight(); }

  /// Reclaims nodes that no slot from `oldest_sequence` on names, and of the users of `oldest_of` those that none from
  /// another one on names, and the frames that only those named: each of them, but for those of slots that share their
  /// generation with retained ones. Stacks handed out earlier and not marked are invalid afterwards. True when a frame
  /// was reclaimed.
  struct OldestOf {
    UserTag user = kUnused;
    std::uint32_t sequence = 0;
  };
  bool sweep(std::uint32_t oldest_sequence, std::span<const OldestOf> oldest_of = {});

  /// Why the stack is truncated, if it is. `known` is for further stacks, empty at first, and until the next sweep.
  [[nodiscard]] std::optional<Truncation> truncation_of(StackId stack, std::vector<std::uint8_t>& known) const;

  /// Nodes that are one user's alone, by user.
  [[nodiscard]] const UserShares::Held& nodes_of_users() const { return nodes_of_; }

  /// Modules of all frames, sorted; without the marker.
  [[nodiscard]] std::vector<ModuleId> modules();

  [[nodiscard]] View view() { return {nodes_.view(), frames_.view(), hidden_}; }
  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] std::size_t frame_count() const { return frames_.size(); }

 private:
  /// Recently seen stacks by a hash of all their frames, and every kBetweenRecent-th caller of them: of a stack that
  /// was not seen before, most callers were. Without it each frame of each sample costs two look-ups. All 64 bits have
  /// to be the same, of which 15 say where it stands: with a thousand look-ups a second one stack is taken for another
  /// once in about eighteen thousand years. Comparing the frames, which lie anywhere in memory, costs more than a tenth
  /// of what ingest does.
  struct Recent {
    std::uint64_t hash = 0;
    StackId stack = kEmptyStack;
  };

  static constexpr std::size_t kBetweenRecent = 4;

  /// Fills hashes_. Returns that of the whole stack.
  std::uint64_t hash_all(std::optional<Truncation> truncation, std::span<const Frame> frames);
  [[nodiscard]] Recent& recent(std::uint64_t hash) { return recent_[hash & (recent_.size() - 1)]; }
  void remember(std::uint64_t hash, StackId stack) { recent(hash) = {hash, stack}; }
  /// The stack that was seen recently, if it was. `hash` is that of its frames.
  [[nodiscard]] std::optional<StackId> find_recent(std::uint64_t hash);
  [[nodiscard]] std::uint64_t hash_of(const Frame& frame) const;
  [[nodiscard]] static std::uint64_t hash_of(const CallNode& node);
  std::optional<FrameId> intern_frame(const Frame& frame);
  std::optional<StackId> intern_child(StackId caller, const Frame& frame);
  void renumber(Generations to);

  Budget& budget_;
  const std::uint64_t key_;  ///< see keyed_hash.h
  Nodes nodes_;
  IdIndex node_index_;
  Frames frames_;
  IdIndex frame_index_;
  std::vector<Recent> recent_;         ///< direct-mapped, a power of two of them: about 1/256 of the budget
  std::vector<std::uint64_t> hashes_;  ///< scratch: of the outermost frame, of the two outermost, ...
  Generations generations_;            ///< of the nodes' stamps
  std::uint32_t oldest_sequence_ = 0, newest_sequence_ = 0;
  UserShares::Held nodes_of_{};     ///< by UserTag
  StackId hidden_ = kEmptyStack;    ///< of one frame, in kHiddenModule; the empty one while there is none
  StackId given_up_ = kEmptyStack;  ///< of the marker alone; likewise
};

}  // namespace flamed::store
