// SPDX-License-Identifier: Apache-2.0
//
// ProfileTree: builds the tree of a Profile, one frame below its caller once. A local of one query; must not outlive
// its FrameTable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/budget.h"
#include "store/frame_table.h"
#include "store/id_index.h"
#include "store/profile.h"
#include "store/profile_options.h"

namespace flamed::store {

class ProfileTree {
 public:
  /// Node 0 is the root.
  ProfileTree(FrameTable& frames, std::uint32_t root_frame, std::size_t most_nodes);
  ProfileTree(const ProfileTree&) = delete;
  ProfileTree& operator=(const ProfileTree&) = delete;

  /// Finds or makes the node of `frame` below `parent`. With as many nodes as there may be it gives `parent` itself
  /// instead of a new one: an answer must not grow the daemon without bound.
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame);
  void add_self(std::uint32_t node, std::uint64_t samples, std::uint64_t ns) {
    nodes_[node].self_samples += samples;
    nodes_[node].self_ns += ns;
  }

  [[nodiscard]] bool was_cut() const { return was_cut_; }

  /// `focus`, `ignore` and `hide` of the options. With `grouped`, the level below the root is no code and always stays.
  [[nodiscard]] std::unique_ptr<ProfileTree> filtered(const ProfileOptions& options, bool grouped) const;
  /// Only what stands below a path of names that begins below the root. Null when nothing does.
  [[nodiscard]] std::unique_ptr<ProfileTree> subtree(const std::vector<std::string>& path) const;
  /// `min_percent` and `max_nodes`.
  [[nodiscard]] std::unique_ptr<ProfileTree> pruned(double min_percent, std::size_t max_nodes) const;

  /// Fills `nodes` and `frames`. Frames that no node names are left out. The FrameTable is used up.
  void finish(Profile& profile) &&;

 private:
  struct Node {
    std::uint32_t parent = 0;  ///< made before its children, so its index is smaller
    std::uint32_t frame = 0;
    std::uint64_t self_samples = 0;
    std::uint64_t self_ns = 0;
    std::uint32_t first_child = 0;   ///< 0: none
    std::uint32_t next_sibling = 0;  ///< 0: none; only among the first kListedChildren of a parent
  };
  /// Nearly all nodes have very few children: those are found in a list, beside their parent in memory. Further ones
  /// are in index_.
  static constexpr unsigned kListedChildren = 8;

  [[nodiscard]] static std::uint64_t hash_of(std::uint32_t parent, std::uint32_t frame) {
    return mix((std::uint64_t{parent} << 32) | frame);
  }
  /// Sorts the frames that nodes name, rewrites the nodes to match, and returns the frames.
  std::vector<NamedFrame> sort_frames();
  /// Indices of nodes, grouped by parent, siblings by name; group p is [first[p], first[p + 1]).
  [[nodiscard]] std::vector<std::uint32_t> by_parent(std::size_t frame_count, std::vector<std::uint32_t>& first) const;

  FrameTable& frames_;
  std::size_t most_nodes_;
  Budget unlimited_{static_cast<std::size_t>(-1) / 2};
  std::vector<Node> nodes_;
  IdIndex index_;
  bool was_cut_ = false;
};

}  // namespace flamed::store
