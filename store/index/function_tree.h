// SPDX-License-Identifier: Apache-2.0
//
// FunctionTree: the call-tree as functions. Several addresses of a function below the same callers are one node, and an
// address with inlined functions is several nodes. Nodes are created on demand. One thread at a time; must not outlive
// its arguments, in which frames must be named before they are used here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/containers/budget.h"
#include "store/containers/id_index.h"
#include "store/index/function_table.h"
#include "store/index/shown_frames.h"
#include "store/index/stack_states.h"
#include "store/model/quality.h"
#include "store/model/selection.h"
#include "store/ring/call_tree.h"
#include "store/ring/histogram.h"

namespace flamed::store {

class FunctionTree {
 public:
  struct Given {
    const CallTree::View& tree;
    FunctionTable& functions;
    const ShownFrames& shown;
    StackStates& states;
  };
  /// How stacks are shown.
  struct Shape {
    Side side = Side::kBoth;
    bool delimited = false;  ///< see ProfileOptions
    friend bool operator==(const Shape&, const Shape&) = default;
  };

  FunctionTree(const Given& given, Shape shape, std::size_t most_nodes);
  FunctionTree(const FunctionTree&) = delete;
  FunctionTree& operator=(const FunctionTree&) = delete;

  [[nodiscard]] Shape shape() const { return shape_; }
  /// The node where a stack ends.
  std::uint32_t node_of(StackRef ref);
  /// Node 0 is the root, its own parent, and no function.
  [[nodiscard]] std::uint32_t parent(std::uint32_t node) const { return nodes_[node].parent; }
  [[nodiscard]] std::uint32_t function(std::uint32_t node) const { return nodes_[node].function; }
  /// Whether the node's function is also among its callers.
  [[nodiscard]] bool repeats(std::uint32_t node) const { return nodes_[node].repeats; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  /// The limit of nodes was reached: inner functions are missing.
  [[nodiscard]] bool was_cut() const { return was_cut_; }

  /// To be called when the call-tree's ids or names have changed. Nodes stay.
  void forget();
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Node {
    std::uint32_t parent = 0;  ///< created before its children, so its index is smaller
    std::uint32_t function : 31 = 0;
    bool repeats : 1 = false;
    std::uint32_t first_child = 0;   ///< 0: none
    std::uint32_t next_sibling = 0;  ///< 0: none; only among the first kListedChildren of a parent
  };
  static_assert(sizeof(Node) == 16);
  /// Nearly all nodes have very few children: the first ones are in a list, near their parent in memory. Further ones
  /// are in index_.
  static constexpr unsigned kListedChildren = 8;
  static constexpr std::uint32_t kNone = 0xffffffffU;

  [[nodiscard]] static std::uint64_t hash_of(std::uint32_t parent, std::uint32_t function) {
    return mix((std::uint64_t{parent} << 32) | function);
  }
  std::uint32_t child(std::uint32_t parent, std::uint32_t function);
  [[nodiscard]] bool has_caller(std::uint32_t node, std::uint32_t function) const;
  std::uint32_t below(std::uint32_t node, StackId caller, const CallNode& call);

  const Given given_;
  const Shape shape_;
  const std::size_t most_nodes_;
  std::array<std::uint32_t, kTruncationCount> marks_{};  ///< functions
  std::uint32_t border_ = 0;                             ///< the function "--"
  std::vector<Node> nodes_{1};
  Budget unlimited_{static_cast<std::size_t>(-1) / 2};
  IdIndex index_{unlimited_};
  std::vector<std::uint32_t> place_of_;  ///< by StackId
  std::vector<std::uint32_t> path_;      ///< scratch
  bool was_cut_ = false;
};

}  // namespace flamed::store
