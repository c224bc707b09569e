// SPDX-License-Identifier: Apache-2.0
#include "store/profile_tree.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

namespace flamed::store {

std::size_t ProfileTree::FrameHash::operator()(const NamedFrame& frame) const noexcept {
  return std::hash<std::string_view>{}(frame.name) ^ (std::hash<std::string_view>{}(frame.module) * 31);
}

ProfileTree::ProfileTree(const NamedFrame& root) : index_(unlimited_) {
  nodes_.push_back(Node{0, intern(root), 0, 0, 0, 0});
}

std::uint32_t ProfileTree::intern(const NamedFrame& frame) {
  auto [it, fresh] = frame_ids_.try_emplace(frame, static_cast<std::uint32_t>(frames_.size()));
  if (fresh) frames_.push_back(&it->first);
  return it->second;
}

std::uint32_t ProfileTree::child(std::uint32_t parent, std::uint32_t frame) {
  unsigned listed = 0;
  std::uint32_t last = 0;
  for (std::uint32_t at = nodes_[parent].first_child; at != 0; at = nodes_[at].next_sibling, ++listed) {
    if (nodes_[at].frame == frame) return at;
    last = at;
  }
  std::uint64_t hash = hash_of(parent, frame);
  if (listed == kListedChildren) {
    std::uint32_t found = index_.find(
        hash, [&](std::uint32_t node) { return nodes_[node].parent == parent && nodes_[node].frame == frame; });
    if (found != IdIndex::kNone) return found;
  }
  if (nodes_.size() >= kMostNodes) {
    was_cut_ = true;
    return parent;
  }
  auto node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(Node{parent, frame, 0, 0, 0, 0});
  if (listed == kListedChildren) {
    static_cast<void>(
        index_.make_room([&](std::uint32_t other) { return hash_of(nodes_[other].parent, nodes_[other].frame); }));
    index_.insert(hash, node);
  } else if (last == 0) {
    nodes_[parent].first_child = node;
  } else {
    nodes_[last].next_sibling = node;
  }
  return node;
}

std::vector<NamedFrame> ProfileTree::sort_frames() {
  std::vector<bool> used(frames_.size(), false);
  for (const Node& node : nodes_) used[node.frame] = true;
  std::vector<std::uint32_t> order;
  for (std::uint32_t frame = 0; frame < frames_.size(); ++frame) {
    if (used[frame]) order.push_back(frame);
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const NamedFrame& x = *frames_[a];
    const NamedFrame& y = *frames_[b];
    return std::tie(x.name, x.module, x.kind, x.reason) < std::tie(y.name, y.module, y.kind, y.reason);
  });
  std::vector<std::uint32_t> rank(frames_.size(), 0);
  std::vector<NamedFrame> sorted;
  sorted.reserve(order.size());
  for (std::uint32_t frame : order) {
    rank[frame] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(*frames_[frame]);
  }
  for (Node& node : nodes_) node.frame = rank[node.frame];
  return sorted;
}

std::vector<std::uint32_t> ProfileTree::by_parent(std::vector<std::uint32_t>& first) const {
  // Two stable counting sorts: by frame, which is in order of names by now, then by parent. Node 0 is nobody's child.
  auto counting_sort = [&](const std::vector<std::uint32_t>& in, std::vector<std::uint32_t>& start, std::size_t keys,
                           auto key_of) {
    start.assign(keys + 1, 0);
    for (std::uint32_t node : in) ++start[key_of(node) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<std::uint32_t> next(start.begin(), start.end() - 1);
    std::vector<std::uint32_t> out(in.size());
    for (std::uint32_t node : in) out[next[key_of(node)]++] = node;
    return out;
  };
  std::vector<std::uint32_t> all(nodes_.size() - 1);
  std::iota(all.begin(), all.end(), 1U);
  std::vector<std::uint32_t> scratch;
  all = counting_sort(all, scratch, frames_.size(), [&](std::uint32_t node) { return nodes_[node].frame; });
  return counting_sort(all, first, nodes_.size(), [&](std::uint32_t node) { return nodes_[node].parent; });
}

void ProfileTree::finish(Profile& profile) && {
  profile.frames = sort_frames();
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> children = by_parent(first);

  profile.nodes.clear();
  profile.nodes.reserve(nodes_.size());
  std::vector<std::uint32_t> place(nodes_.size(), 0);  ///< where a node stands in the profile
  std::vector<std::uint32_t> pending{0};
  while (!pending.empty()) {
    std::uint32_t id = pending.back();
    pending.pop_back();
    const Node& node = nodes_[id];
    place[id] = static_cast<std::uint32_t>(profile.nodes.size());
    profile.nodes.push_back({node.frame, place[node.parent], node.self_samples, node.self_samples, node.self_ns});
    for (std::uint32_t i = first[id + 1]; i-- > first[id];) pending.push_back(children[i]);
  }
  for (std::size_t i = profile.nodes.size(); i-- > 1;) {
    ProfileNode& parent = profile.nodes[profile.nodes[i].parent];
    parent.total_samples += profile.nodes[i].total_samples;
    parent.total_ns += profile.nodes[i].total_ns;
  }
}

}  // namespace flamed::store
