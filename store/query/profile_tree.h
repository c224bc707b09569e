// SPDX-License-Identifier: Apache-2.0
//
// ProfileTree: builds the tree of an answer, with one node for each frame below a caller, and counts for one side or
// two compared ones. A local of one query; must not outlive its FrameTable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/containers/budget.h"
#include "store/containers/id_index.h"
#include "store/index/frame_table.h"
#include "store/model/profile.h"
#include "store/model/profile_options.h"

namespace flamed::store {

class ProfileTree {
 public:
  /// Node 0 is the root. `sides`: 1 or 2.
  ProfileTree(FrameTable& frames, std::uint32_t root_frame, std::size_t most_nodes, std::size_t sides = 1);
  ProfileTree(const ProfileTree&) = delete;
  ProfileTree& operator=(const ProfileTree&) = delete;

  /// The expected number of nodes.
  void reserve(std::size_t nodes);
  /// Finds or creates the node of `frame` below `parent`. At the limit of nodes, returns `parent` instead of a new
  /// node: an answer's memory must be bounded.
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame);
  /// The same if the caller knows whether the frame is also among its callers.
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame, bool repeats);
  /// The same for a new frame, in a tree in which child() is not used below `parent`.
  std::uint32_t add(std::uint32_t parent, std::uint32_t frame, bool repeats);
  void add_self(std::uint32_t node, std::uint64_t samples, std::size_t side = 0) { own_[side][node] += samples; }
  /// Samples whose innermost frame is this node.
  [[nodiscard]] std::uint64_t own(std::uint32_t node, std::size_t side = 0) const { return own_[side][node]; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  [[nodiscard]] bool was_cut() const { return was_cut_; }

  /// `focus`, `ignore` and `hide` of the options. With `grouped`, the level below the root is not code and always
  /// stays.
  [[nodiscard]] std::unique_ptr<ProfileTree> filtered(const ProfileOptions& options, bool grouped) const;
  /// Only the subtree below a path of names that begins below the root. Null if there is no such path.
  [[nodiscard]] std::unique_ptr<ProfileTree> subtree(const std::vector<std::string>& path) const;
  /// `min_percent` and `max_nodes`. Null: nothing is left out.
  [[nodiscard]] std::unique_ptr<ProfileTree> pruned(double min_percent, std::size_t max_nodes) const;

  /// Returns the frames of all nodes, sorted and distinct. From then on nodes refer to indices in this list, and the
  /// tree can only be read. Consumes the FrameTable.
  [[nodiscard]] FrameList take_frames();
  /// Its index is larger than its parent's. The root is its own parent.
  [[nodiscard]] std::uint32_t parent(std::uint32_t node) const { return nodes_[node].parent; }
  [[nodiscard]] std::uint32_t frame(std::uint32_t node) const { return nodes_[node].frame; }
  /// Whether the node's frame is also among its callers.
  [[nodiscard]] bool repeats(std::uint32_t node) const { return nodes_[node].repeats; }

  struct OrderedNode {
    std::uint32_t frame = 0;   ///< index into the frames
    std::uint32_t parent = 0;  ///< index among the ordered nodes; the root is its own parent
    std::uint32_t node = 0;    ///< of the tree
  };
  /// The nodes in the order of answers: depth first, siblings by name. After take_frames().
  [[nodiscard]] std::vector<OrderedNode> in_order() const;
  /// The same for the `wanted` nodes; the parent of each must be wanted, too.
  [[nodiscard]] std::vector<OrderedNode> in_order(const std::vector<bool>& wanted) const;
  /// Fills `nodes` and `frames` from a tree with one side. Consumes the tree and the FrameTable.
  void finish(Profile& profile) &&;

 private:
  struct Node {
    std::uint32_t parent = 0;  ///< created before its children, so its index is smaller
    std::uint32_t frame : 31 = 0;
    bool repeats : 1 = false;
    std::uint32_t first_child = 0;   ///< 0: none
    std::uint32_t next_sibling = 0;  ///< 0: none; only among the first kListedChildren of a parent
  };
  /// Nearly all nodes have very few children: the first ones are in a list, near their parent in memory. Further ones
  /// are in index_.
  static constexpr unsigned kListedChildren = 8;
  static constexpr std::uint32_t kLargestFrame = 0x7fffffffU;

  [[nodiscard]] static std::uint64_t hash_of(std::uint32_t parent, std::uint32_t frame) {
    return mix((std::uint64_t{parent} << 32) | frame);
  }
  /// Adds a new node to a tree in which child() will not be used any more.
  std::uint32_t append(std::uint32_t parent, std::uint32_t frame, bool repeats);
  /// Whether the node or one of its callers has the frame.
  [[nodiscard]] bool has_caller(std::uint32_t node, std::uint32_t frame) const;
  void add_own(std::uint32_t node, const ProfileTree& other, std::uint32_t others_node);
  [[nodiscard]] std::unique_ptr<ProfileTree> empty_like(std::uint32_t root_frame) const;
  [[nodiscard]] static std::vector<OrderedNode> in_order(std::span<const Node> nodes);

  FrameTable& frames_;
  std::size_t most_nodes_;
  Budget unlimited_{static_cast<std::size_t>(-1) / 2};
  std::vector<Node> nodes_;
  std::vector<std::vector<std::uint64_t>> own_;  ///< samples, by side, then by node
  IdIndex index_;
  bool was_cut_ = false;
};

}  // namespace flamed::store
