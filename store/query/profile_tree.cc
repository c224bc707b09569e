// SPDX-License-Identifier: Apache-2.0
#include "store/query/profile_tree.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "store/containers/index_groups.h"

namespace flamed::store {

ProfileTree::ProfileTree(FrameTable& frames, std::uint32_t root_frame, std::size_t most_nodes, std::size_t sides)
    : frames_(frames), most_nodes_(std::max<std::size_t>(most_nodes, 1)), own_(sides), index_(unlimited_) {
  append(0, root_frame, false);
}

void ProfileTree::reserve(std::size_t nodes) {
  nodes = std::min(nodes, most_nodes_);
  nodes_.reserve(nodes);
  for (std::vector<std::uint64_t>& side : own_) side.reserve(nodes);
}

std::uint32_t ProfileTree::append(std::uint32_t parent, std::uint32_t frame, bool repeats) {
  const auto node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(Node{parent, frame & kLargestFrame, repeats, 0, 0});
  for (std::vector<std::uint64_t>& side : own_) side.emplace_back();
  return node;
}

void ProfileTree::add_own(std::uint32_t node, const ProfileTree& other, std::uint32_t others_node) {
  for (std::size_t side = 0; side < own_.size(); ++side) {
    add_self(node, other.own(others_node, side), side);
  }
}

std::unique_ptr<ProfileTree> ProfileTree::empty_like(std::uint32_t root_frame) const {
  auto tree = std::make_unique<ProfileTree>(frames_, root_frame, most_nodes_, own_.size());
  tree->was_cut_ = was_cut_;
  return tree;
}

bool ProfileTree::has_caller(std::uint32_t node, std::uint32_t frame) const {
  while (node != 0 && nodes_[node].frame != frame) node = nodes_[node].parent;
  return nodes_[node].frame == frame;
}

std::uint32_t ProfileTree::child(std::uint32_t parent, std::uint32_t frame) {
  return child(parent, frame, has_caller(parent, frame));
}

std::uint32_t ProfileTree::child(std::uint32_t parent, std::uint32_t frame, bool repeats) {
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
  if (nodes_.size() >= most_nodes_) {
    was_cut_ = true;
    return parent;
  }
  const std::uint32_t node = append(parent, frame, repeats);
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

std::uint32_t ProfileTree::add(std::uint32_t parent, std::uint32_t frame, bool repeats) {
  if (nodes_.size() < most_nodes_) return append(parent, frame, repeats);
  was_cut_ = true;
  return parent;
}

std::unique_ptr<ProfileTree> ProfileTree::filtered(const ProfileOptions& options, bool grouped) const {
  constexpr std::uint8_t kKnown = 1, kFocused = 2, kIgnored = 4, kHidden = 8;
  std::vector<std::uint8_t> judged(frames_.size(), 0);  // by frame
  const auto judge = [&](std::uint32_t frame) {
    if (judged[frame] == 0) {
      const std::string_view name = frames_.bare_name(frame);
      judged[frame] = kKnown;
      if (options.focus && options.focus(name)) judged[frame] |= kFocused;
      if (options.ignore && options.ignore(name)) judged[frame] |= kIgnored;
      if (options.hide && options.hide(name)) judged[frame] |= kHidden;
    }
    return judged[frame];
  };
  auto out = empty_like(nodes_[0].frame);
  // A frame that is left out with all its callees gets no node: nodes are created with their first sample.
  constexpr std::uint32_t kNone = 0xffffffffU;
  std::vector<std::uint8_t> passed(nodes_.size(), 0);  // which patterns the stack up to the node has matched
  std::vector<std::uint32_t> place(nodes_.size(), kNone);
  std::vector<std::uint32_t> path;
  place[0] = 0;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const bool is_code = node != 0 && !(grouped && nodes_[node].parent == 0);
    const std::uint8_t own = is_code ? judge(nodes_[node].frame) : std::uint8_t{0};
    passed[node] = static_cast<std::uint8_t>((passed[nodes_[node].parent] & ~kHidden) | own);
    if (std::all_of(own_.begin(), own_.end(), [&](const auto& side) { return side[node] == 0; })) continue;
    if ((passed[node] & kIgnored) != 0 || (options.focus && (passed[node] & kFocused) == 0)) continue;
    path.clear();
    std::uint32_t at = node;
    for (; place[at] == kNone; at = nodes_[at].parent) path.push_back(at);
    std::uint32_t to = place[at];
    for (std::size_t i = path.size(); i-- > 0;) {
      if ((passed[path[i]] & kHidden) == 0) to = out->child(to, nodes_[path[i]].frame, nodes_[path[i]].repeats);
      place[path[i]] = to;
    }
    out->add_own(to, *this, node);
  }
  return out;
}

std::unique_ptr<ProfileTree> ProfileTree::subtree(const std::vector<std::string>& path) const {
  constexpr std::uint32_t kNone = 0xffffffffU;
  std::unique_ptr<ProfileTree> out;
  std::vector<std::uint32_t> depth(nodes_.size(), kNone);  // how much of the path matches up to the node
  std::vector<std::uint32_t> place(nodes_.size(), kNone);
  depth[0] = 0;
  for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
    const Node& from = nodes_[node];
    if (place[from.parent] != kNone) {
      place[node] = out->child(place[from.parent], from.frame);
    } else {
      const std::uint32_t above = depth[from.parent];
      if (above == kNone || frames_[from.frame].name != path[above]) continue;
      depth[node] = above + 1;
      if (depth[node] != path.size()) continue;
      if (!out) out = empty_like(from.frame);
      place[node] = 0;
    }
    out->add_own(place[node], *this, node);
  }
  return out;
}

std::unique_ptr<ProfileTree> ProfileTree::pruned(double min_percent, std::size_t max_nodes) const {
  if (min_percent <= 0 && (max_nodes == 0 || nodes_.size() <= max_nodes)) return nullptr;
  std::vector<std::uint64_t> total = own_.front();
  for (std::size_t i = nodes_.size(); i-- > 1;) total[nodes_[i].parent] += total[i];

  // A total order with parents before their children, so the largest nodes always form a tree.
  const auto larger = [&](std::uint32_t a, std::uint32_t b) {
    return total[a] != total[b] ? total[a] > total[b] : a < b;
  };
  const double least = static_cast<double>(total[0]) * min_percent / 100;
  std::vector<std::uint32_t> kept;
  for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
    if (static_cast<double>(total[node]) >= least) kept.push_back(node);
  }
  const std::size_t most = max_nodes == 0 ? kept.size() : std::min(kept.size(), max_nodes - 1);
  if (most < kept.size()) {
    std::nth_element(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(most), kept.end(), larger);
    kept.resize(most);
  }
  std::vector<bool> is_kept(nodes_.size(), false);
  is_kept[0] = true;
  for (std::uint32_t node : kept) is_kept[node] = true;

  auto out = empty_like(nodes_[0].frame);
  out->reserve(kept.size() + kept.size() / 4);
  std::vector<std::uint32_t> place(nodes_.size(), 0);  // of pruned nodes: the place of the nearest caller that is not
                                                       // pruned
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (is_kept[node]) {
      if (node != 0) place[node] = out->append(place[nodes_[node].parent], nodes_[node].frame, nodes_[node].repeats);
      out->add_self(place[node], own(node));
    } else {
      place[node] = place[nodes_[node].parent];
    }
  }
  const auto kept_nodes = static_cast<std::uint32_t>(out->nodes_.size());
  const IndexGroups pruned_below(kept_nodes, nodes_.size(), [&](std::uint32_t node) {
    return is_kept[node] ? IndexGroups::kNoGroup : place[node];
  });
  std::vector<std::uint32_t> counted_for(frames_.size(), 0);  // by frame: 1 + the last caller for which it was counted
  for (std::uint32_t caller = 0; caller < kept_nodes; ++caller) {
    if (pruned_below.of(caller).empty()) continue;
    std::size_t functions = 0;
    std::uint64_t samples = 0;
    for (const std::uint32_t node : pruned_below.of(caller)) {
      if (std::exchange(counted_for[nodes_[node].frame], caller + 1) != caller + 1) ++functions;
      samples += own(node);
    }
    const std::string name = "(pruned: " + std::to_string(functions) + (functions == 1 ? " function)" : " functions)");
    out->add_self(out->append(caller, frames_.intern({name, "", FrameKind::kMarker, ""}), false), samples);
  }
  return out;
}

FrameList ProfileTree::take_frames() {
  std::vector<bool> used(frames_.size(), false);
  for (const Node& node : nodes_) used[node.frame] = true;
  const std::vector<std::uint32_t> order = frames_.in_order(used);
  std::vector<std::uint32_t> rank(frames_.size(), 0);
  for (std::uint32_t place = 0; place < order.size(); ++place) rank[order[place]] = place;
  for (Node& node : nodes_) node.frame = rank[node.frame] & kLargestFrame;
  return std::move(frames_).list(order);
}

std::vector<ProfileTree::OrderedNode> ProfileTree::in_order() const { return in_order(nodes_); }

std::vector<ProfileTree::OrderedNode> ProfileTree::in_order(const std::vector<bool>& wanted) const {
  std::vector<Node> nodes;
  std::vector<std::uint32_t> node_at;                  // of the tree
  std::vector<std::uint32_t> place_of(nodes_.size());  // among `nodes`
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!wanted[node]) continue;
    place_of[node] = static_cast<std::uint32_t>(nodes.size());
    nodes.push_back(nodes_[node]);
    nodes.back().parent = place_of[nodes_[node].parent];
    node_at.push_back(node);
  }
  std::vector<OrderedNode> ordered = in_order(nodes);
  for (OrderedNode& node : ordered) node.node = node_at[node.node];
  return ordered;
}

std::vector<ProfileTree::OrderedNode> ProfileTree::in_order(std::span<const Node> nodes) {
  IndexGroups children(nodes.size(), nodes.size(), [&](std::uint32_t node) {
    return node == 0 ? IndexGroups::kNoGroup : nodes[node].parent;  // node 0 has no parent
  });
  const auto by_frame = [&](std::uint32_t a, std::uint32_t b) {
    return nodes[a].frame != nodes[b].frame ? nodes[a].frame < nodes[b].frame : a < b;
  };
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    const std::span<std::uint32_t> siblings = children.of(node);
    if (siblings.size() >= 2) std::sort(siblings.begin(), siblings.end(), by_frame);  // nearly none
  }
  std::vector<OrderedNode> ordered;
  ordered.reserve(nodes.size());
  struct Pending {
    std::uint32_t node;
    std::uint32_t parent;
  };
  std::vector<Pending> pending{{0, 0}};
  while (!pending.empty()) {
    const Pending at = pending.back();
    pending.pop_back();
    const auto place = static_cast<std::uint32_t>(ordered.size());
    ordered.push_back({nodes[at.node].frame, at.parent, at.node});
    const std::span<const std::uint32_t> below = children.of(at.node);
    for (std::size_t i = below.size(); i-- > 0;) pending.push_back({below[i], place});
  }
  return ordered;
}

void ProfileTree::finish(Profile& profile) && {
  profile.frames = take_frames();
  const std::vector<OrderedNode> ordered = in_order();
  profile.nodes.clear();
  profile.nodes.reserve(ordered.size());
  for (const OrderedNode& node : ordered) {
    const std::uint64_t self = own(node.node);
    profile.nodes.push_back({node.frame, node.parent, self, self});
  }
  for (std::size_t i = profile.nodes.size(); i-- > 1;) {
    profile.nodes[profile.nodes[i].parent].total_samples += profile.nodes[i].total_samples;
  }
}

}  // namespace flamed::store
