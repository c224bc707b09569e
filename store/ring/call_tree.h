// SPDX-License-Identifier: Apache-2.0
//
// CallTree: every stored stack, once. A node is a frame below its caller; a stack is its innermost node. A truncated
// stack begins at a marker frame Frame{kTruncatedModule, reason} right below the root, so that the stack has its
// reason.
//
// Belongs to the writer, except its views, which are immutable and may be used on any thread. Must not outlive its
// Budget.
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

/// The stack without frames. Always present.
inline constexpr StackId kEmptyStack{0};

/// A Frame in 12 bytes instead of 16.
class PackedFrame {
 public:
  PackedFrame() = default;
  explicit PackedFrame(const Frame& frame)
      : module(frame.module),
        offset_low_(static_cast<std::uint32_t>(frame.offset)),
        offset_high_(static_cast<std::uint32_t>(frame.offset >> 32)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a PackedFrame is a Frame
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
  /// The generation and the user of the node's last use.
  using NodeStamp = std::uint16_t;
  using Nodes = SharedArray<CallNode, 2048, NodeStamp>;
  using Frames = SharedArray<PackedFrame, 1024, NoStamp>;

  struct View {
    Nodes::View nodes;
    Frames::View frames;
    StackId hidden = kEmptyStack;  ///< shown instead of a stack that the viewer may not see
  };

  /// The result of intern(): the whole stack, or as many outer frames as the budget had room for.
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

  /// Records that slot `sequence` refers to the stack, for the user: it and its callers are kept as long as that slot.
  void mark_used(StackId stack, std::uint32_t sequence, UserTag user = kSeveral);

  /// Records that slot `sequence` has hidden stacks.
  void mark_hidden(std::uint32_t sequence);

  /// The stack that replaces dropped stacks in slots (Truncation::kUserShare). The first call enters it, and it stays.
  /// Empty: there is no room.
  std::optional<StackId> given_up();

  /// There is room for only a few more nodes, even if the budget has room.
  [[nodiscard]] bool is_tight() const { return node_index_.is_tight() || frame_index_.is_tight(); }

  /// Reclaims nodes that no slot from `oldest_sequence` on refers to (for the users in `oldest_of`, from their own
  /// oldest slot on), and frames that only those nodes had. Nodes of slots that share a generation with retained slots
  /// stay. Stacks that were not marked are invalid afterwards. True if a frame was reclaimed.
  struct OldestOf {
    UserTag user = kUnused;
    std::uint32_t sequence = 0;
  };
  bool sweep(std::uint32_t oldest_sequence, std::span<const OldestOf> oldest_of = {});

  /// Why the stack is truncated, if it is. `known` caches results for further stacks: empty at first, valid until the
  /// next sweep.
  [[nodiscard]] std::optional<Truncation> truncation_of(StackId stack, std::vector<std::uint8_t>& known) const;
  /// The same for a single stack.
  [[nodiscard]] std::optional<Truncation> truncation_of(StackId stack) const;

  /// By user, the number of nodes that only this user has.
  [[nodiscard]] const UserShares::Held& nodes_of_users() const { return nodes_of_; }

  /// Modules of all frames, sorted; without the marker.
  [[nodiscard]] std::vector<ModuleId> modules();

  [[nodiscard]] View view() { return {nodes_.view(), frames_.view(), hidden_}; }
  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] std::size_t frame_count() const { return frames_.size(); }

 private:
  /// Recently seen stacks by a hash of all their frames, and every kBetweenRecent-th caller: most callers of a new
  /// stack have been seen before. Without it each frame of each sample needs two look-ups. All 64 bits must be equal,
  /// 15 of which are the place: at a thousand look-ups a second, one stack is taken for another once in about eighteen
  /// thousand years. Comparing the frames, which are scattered in memory, would take more than a tenth of ingest's
  /// time.
  struct Recent {
    std::uint64_t hash = 0;
    StackId stack = kEmptyStack;
  };

  static constexpr std::size_t kBetweenRecent = 4;

  /// Fills hashes_. Returns the hash of the whole stack.
  std::uint64_t hash_all(std::optional<Truncation> truncation, std::span<const Frame> frames);
  [[nodiscard]] Recent& recent(std::uint64_t hash) { return recent_[hash & (recent_.size() - 1)]; }
  void remember(std::uint64_t hash, StackId stack) { recent(hash) = {hash, stack}; }
  /// The recently seen stack with the `hash` of its frames, if any.
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
  StackId hidden_ = kEmptyStack;    ///< one frame in kHiddenModule; the empty stack until it exists
  StackId given_up_ = kEmptyStack;  ///< the marker alone; likewise
};

}  // namespace flamed::store
