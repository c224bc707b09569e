// SPDX-License-Identifier: Apache-2.0
#include "store/index/function_tree.h"

#include <algorithm>
#include <span>
#include <string>

#include "store/index/seen_frames.h"

namespace flamed::store {
namespace {

constexpr std::uint32_t kLargestFunction = 0x7fffffffU;

NamedFrame mark_of(std::string name) { return {std::move(name), "", FrameKind::kMarker, ""}; }

}  // namespace

FunctionTree::FunctionTree(const Given& given, Shape shape, std::size_t most_nodes)
    : given_(given), shape_(shape), most_nodes_(std::max<std::size_t>(most_nodes, 1)) {
  for (std::size_t reason = 0; reason < kTruncationCount; ++reason) {
    marks_[reason] = given_.functions.intern_mark(mark_of(marker_of(static_cast<Truncation>(reason))));
  }
  border_ = given_.functions.intern_mark(mark_of("--"));
  forget();
}

void FunctionTree::forget() {
  place_of_.assign(std::max<std::size_t>(given_.tree.nodes.limit(), 1), kNone);
  place_of_[kEmptyStack.value] = 0;
}

std::uint32_t FunctionTree::child(std::uint32_t parent, std::uint32_t function) {
  unsigned listed = 0;
  std::uint32_t last = 0;
  for (std::uint32_t at = nodes_[parent].first_child; at != 0; at = nodes_[at].next_sibling, ++listed) {
    if (nodes_[at].function == function) return at;
    last = at;
  }
  const std::uint64_t hash = hash_of(parent, function);
  if (listed == kListedChildren) {
    const std::uint32_t found = index_.find(
        hash, [&](std::uint32_t node) { return nodes_[node].parent == parent && nodes_[node].function == function; });
    if (found != IdIndex::kNone) return found;
  }
  if (nodes_.size() >= most_nodes_) {
    was_cut_ = true;
    return parent;
  }
  const auto node = static_cast<std::uint32_t>(nodes_.size());
  if (nodes_.size() == nodes_.capacity()) nodes_.reserve(nodes_.size() + nodes_.size() / 4 + 64);
  nodes_.push_back({parent, function & kLargestFunction, has_caller(parent, function), 0, 0});
  if (listed == kListedChildren) {
    static_cast<void>(
        index_.make_room([&](std::uint32_t other) { return hash_of(nodes_[other].parent, nodes_[other].function); }));
    index_.insert(hash, node);
  } else if (last == 0) {
    nodes_[parent].first_child = node;
  } else {
    nodes_[last].next_sibling = node;
  }
  return node;
}

/// Whether the node or one of its callers has the function.
bool FunctionTree::has_caller(std::uint32_t node, std::uint32_t function) const {
  while (node != 0 && nodes_[node].function != function) node = nodes_[node].parent;
  return node != 0;
}

std::uint32_t FunctionTree::node_of(StackRef ref) {
  if (place_of_.size() < given_.tree.nodes.limit()) place_of_.resize(given_.tree.nodes.limit(), kNone);
  std::uint32_t at = place_of_[ref.stack.value];
  if (at == kNone) {
    path_.clear();
    for (std::uint32_t node = ref.stack.value; at == kNone; at = place_of_[node]) {
      path_.push_back(node);
      node = given_.tree.nodes[node].caller.value;
    }
    for (std::size_t i = path_.size(); i-- > 0;) {
      const CallNode& call = given_.tree.nodes[path_[i]];
      at = below(at, call.caller, call);
      place_of_[path_[i]] = at;
    }
  }
  return ref.cut ? child(at, marks_[static_cast<std::size_t>(Truncation::kStoreFull)]) : at;
}

/// The node for a frame below `node`.
std::uint32_t FunctionTree::below(std::uint32_t node, StackId caller, const CallNode& call) {
  const Frame& frame = given_.tree.frames[call.frame.value];
  if (frame.module == kTruncatedModule) {
    // The mark of missing frames belongs to their side.
    const bool kernel = frame.offset == static_cast<std::uint64_t>(Truncation::kKernelDepthLimit);
    const bool shown = shape_.side == Side::kBoth || kernel == (shape_.side == Side::kKernel);
    return shown ? child(node, marks_[frame.offset]) : node;
  }
  if (!shows(shape_.side, frame)) return node;
  if (shape_.delimited && shape_.side == Side::kBoth && frame.module == kKernelModule) {
    const StackState state = given_.states.of(caller);
    if (state.has_user() && !state.has_kernel()) node = child(node, border_);
  }
  for (const std::uint32_t variant : given_.shown.chain(call.frame.value)) {
    node = child(node, given_.functions.variant(variant).function);
  }
  return node;
}

std::size_t FunctionTree::bytes() const {
  return nodes_.capacity() * sizeof(Node) + place_of_.capacity() * sizeof(std::uint32_t) + unlimited_.used_bytes();
}

}  // namespace flamed::store
