// SPDX-License-Identifier: Apache-2.0
//
// ProfileTree: builds the tree of an answer, one frame below its caller once, with the counts of one side or of the two
// that are compared. A local of one query; must not outlive its FrameTable.
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

  /// About as many nodes will come.
  void reserve(std::size_t nodes);
  /// Finds or makes the node of `frame` below `parent`. With as many nodes as there may be it gives `parent` itself
  /// instead of a new one: an answer must not grow the daemon without bound.
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame);
  /// The same for who knows whether the frame is among its callers too.
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame, bool repeats);
  /// The same for a frame that is not there yet, in a tree in which child() looks for nothing below `parent`.
  std::uint32_t add(std::uint32_t parent, std::uint32_t frame, bool repeats);
  void add_self(std::uint32_t node, std::uint64_t samples, std::size_t side = 0) { own_[side][node] += samples; }
  /// How many samples end in the node itself.
  [[nodiscard]] std::uint64_t own(std::uint32_t node, std::size_t side = 0) const { return own_[side][node]; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  [[nodiscard]] bool was_cut() const { return was_cut_; }

  /// `focus`, `ignore` and `hide` of the options. With `grouped`, the level below the root is no code and always stays.
  [[nodiscard]] std::unique_ptr<ProfileTree> filtered(const ProfileOptions& options, bool grouped) const;
  /// Only what stands below a path of names that begins below the root. Null when nothing does.
  [[nodiscard]] std::unique_ptr<ProfileTree> subtree(const std::vector<std::string>& path) const;
  /// `min_percent` and `max_nodes`. Null: nothing is left out.
  [[nodiscard]] std::unique_ptr<ProfileTree> pruned(double min_percent, std::size_t max_nodes) const;

  /// Sorts the frames that nodes name, as answers have them: distinct, and none that no node names. From then on nodes
  /// name them by their place among these, and the tree does nothing but tell of itself. The FrameTable is used up.
  [[nodiscard]] FrameList take_frames();
  /// Its index is larger than its parent's. The root is its own parent.
  [[nodiscard]] std::uint32_t parent(std::uint32_t node) const { return nodes_[node].parent; }
  [[nodiscard]] std::uint32_t frame(std::uint32_t node) const { return nodes_[node].frame; }
  /// Whether the node's frame is among its callers too.
  [[nodiscard]] bool repeats(std::uint32_t node) const { return nodes_[node].repeats; }

  struct OrderedNode {
    std::uint32_t frame = 0;   ///< place among the frames
    std::uint32_t parent = 0;  ///< index among the ordered nodes; the root is its own parent
    std::uint32_t node = 0;    ///< of the tree
  };
  /// The nodes in the order of answers: depth first, siblings by name. After take_frames().
  [[nodiscard]] std::vector<OrderedNode> in_order() const;
  /// The same of the nodes that are `wanted`, with each of which its parent must be.
  [[nodiscard]] std::vector<OrderedNode> in_order(const std::vector<bool>& wanted) const;
  /// Fills `nodes` and `frames`, of a tree with one side. Tree and FrameTable are used up.
  void finish(Profile& profile) &&;

 private:
  struct Node {
    std::uint32_t parent = 0;  ///< made before its children, so its index is smaller
    std::uint32_t frame : 31 = 0;
    bool repeats : 1 = false;
    std::uint32_t first_child = 0;   ///< 0: none
    std::uint32_t next_sibling = 0;  ///< 0: none; only among the first kListedChildren of a parent
  };
  /// Nearly all nodes have very few children: those are found in a list, beside their parent in memory. Further ones
  /// are in index_.
  static constexpr unsigned kListedChildren = 8;
  static constexpr std::uint32_t kLargestFrame = 0x7fffffffU;

  [[nodiscard]] static std::uint64_t hash_of(std::uint32_t parent, std::uint32_t frame) {
    return mix((std::uint64_t{parent} << 32) | frame);
  }
  /// A node that is not there yet, for a tree to which child() will add nothing.
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
