// SPDX-License-Identifier: Apache-2.0
//
// ProfileTree: builds the tree of a Profile out of named frames, one function below its caller once. A local of one
// query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "store/budget.h"
#include "store/id_index.h"
#include "store/profile.h"

namespace flamed::store {

class ProfileTree {
 public:
  static constexpr std::size_t kMostNodes = 4U << 20;  ///< 128 MiB of ProfileNode

  /// Node 0 is the root.
  explicit ProfileTree(const NamedFrame& root);

  /// Index of the frame; equal frames have the same.
  std::uint32_t intern(const NamedFrame& frame);
  /// Finds or makes the node of `frame` below `parent`. Past kMostNodes it gives `parent` itself instead of a new node:
  /// an answer must not grow the daemon without bound.
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame);
  void add_self(std::uint32_t node, std::uint64_t samples, std::uint64_t ns) {
    nodes_[node].self_samples += samples;
    nodes_[node].self_ns += ns;
  }

  [[nodiscard]] bool was_cut() const { return was_cut_; }

  /// Fills `nodes` and `frames`. Frames that no node names are left out.
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
  struct FrameHash {
    std::size_t operator()(const NamedFrame& frame) const noexcept;
  };

  [[nodiscard]] static std::uint64_t hash_of(std::uint32_t parent, std::uint32_t frame) {
    return mix((std::uint64_t{parent} << 32) | frame);
  }
  /// Drops unused frames, sorts the rest by name, rewrites the nodes to match, and returns the frames.
  std::vector<NamedFrame> sort_frames();
  /// Indices of nodes, grouped by parent, siblings by name; group p is [first[p], first[p + 1]).
  [[nodiscard]] std::vector<std::uint32_t> by_parent(std::vector<std::uint32_t>& first) const;

  Budget unlimited_{static_cast<std::size_t>(-1) / 2};
  std::unordered_map<NamedFrame, std::uint32_t, FrameHash> frame_ids_;
  std::vector<const NamedFrame*> frames_;  ///< keys of frame_ids_
  std::vector<Node> nodes_;
  IdIndex index_;
  bool was_cut_ = false;
};

}  // namespace flamed::store
