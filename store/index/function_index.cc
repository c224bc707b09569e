// SPDX-License-Identifier: Apache-2.0
#include "store/index/function_index.h"

#include <algorithm>

namespace flamed::store {

void FunctionIndex::follow(const CallTree::View& view) {
  bool other_meaning = false;
  const auto is_same = [&](const PackedFrame* before, const PackedFrame* now) {
    return before != nullptr && now != nullptr && *before == *now;
  };
  CallTree::Frames::View::for_each_unshared(view_.frames, view.frames,
                                            [&](std::uint32_t id, const PackedFrame* before, const PackedFrame* now) {
                                              if (!shown_.is_known(id) || is_same(before, now)) return;
                                              shown_.forget(id);
                                              other_meaning = true;
                                            });
  // A node is a frame below a caller: it is unchanged if its frame and all its callers are, and the callers of a known
  // node are known, too.
  CallTree::Nodes::View::for_each_unshared(
      view_.nodes, view.nodes, [&](std::uint32_t id, const CallNode* before, const CallNode* now) {
        if (other_meaning || id == kEmptyStack.value || !states_.is_known(id)) return;
        other_meaning = before == nullptr || now == nullptr || before->caller != now->caller ||
                        before->frame != now->frame ||
                        !is_same(view_.frames.find(before->frame.value), view.frames.find(now->frame.value));
      });
  view_ = view;
  if (other_meaning) {
    forget_stacks();
  } else {
    states_.fit();
  }
}

void FunctionIndex::forget_stacks() {
  states_.forget();
  for (const auto& tree : trees_) tree->forget();
}

void FunctionIndex::name(std::span<const std::uint32_t> frames, FrameNamer& namer) {
  const std::uint64_t edition = namer.edition(shown_.modules());
  if (!shown_.name(frames, view_.frames, namer, edition)) return;
  for (const auto& tree : trees_) tree->forget();
}

FunctionTree& FunctionIndex::tree(FunctionTree::Shape shape) {
  const auto found =
      std::find_if(trees_.begin(), trees_.end(), [&](const auto& tree) { return tree->shape() == shape; });
  if (found != trees_.end()) return **found;
  const FunctionTree::Given given{view_, functions_, shown_, states_};
  return *trees_.emplace_back(std::make_unique<FunctionTree>(given, shape, most_nodes_));
}

std::vector<std::uint32_t>& FunctionIndex::counters() {
  counters_.resize(std::max<std::size_t>({counters_.size(), view_.nodes.limit(), 1}));
  return counters_;
}

bool FunctionIndex::was_cut() const {
  return std::any_of(trees_.begin(), trees_.end(), [](const auto& tree) { return tree->was_cut(); });
}

std::size_t FunctionIndex::bytes() const {
  std::size_t bytes = view_.nodes.limit() + (counters_.capacity() + places_.capacity()) * sizeof(std::uint32_t) +
                      functions_.bytes() + shown_.bytes();
  for (const auto& tree : trees_) bytes += tree->bytes();
  return bytes;
}

}  // namespace flamed::store
