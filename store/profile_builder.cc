// SPDX-License-Identifier: Apache-2.0
#include "store/profile_builder.h"

#include <algorithm>
#include <string>
#include <utility>

namespace flamed::store {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

NamedFrame marker_frame(std::string name) { return {std::move(name), "", FrameKind::kMarker, ""}; }
NamedFrame root_frame_of(std::string name) { return {std::move(name), "", FrameKind::kRoot, ""}; }

std::uint64_t total_samples(const ProfileTree& tree, std::size_t side) {
  std::uint64_t samples = 0;
  for (std::uint32_t node = 0; node < tree.size(); ++node) samples += tree.own(node, side).samples;
  return samples;
}

}  // namespace

ProfileBuilder::ProfileBuilder(const SnapshotData& snapshot, const ProfileOptions& options, QueryBudget& budget)
    : snapshot_(snapshot),
      options_(options),
      budget_(budget),
      states_(snapshot),
      frame_table_(options),
      shown_(snapshot, frame_table_) {}

Result<Profile> ProfileBuilder::build(const Selection& selection, FrameNamer& namer) {
  std::deque<GroupedStacks> sides;
  sides.emplace_back(snapshot_, selection, options_, budget_);
  Profile profile;
  std::unique_ptr<ProfileTree> tree = build_tree(sides, namer, {{&profile, &profile.processes}});
  if (tree == nullptr) return budget_.error();
  if (options_.min_percent > 0 || options_.max_nodes != 0) {
    tree = tree->pruned(options_.min_percent, options_.max_nodes);
  }
  if (!budget_.check()) return budget_.error();
  std::move(*tree).finish(profile);
  return profile;
}

Result<ProfileDiff> ProfileBuilder::build_diff(const Selection& before, const Selection& after,
                                               const DiffOptions& diff_options, FrameNamer& namer) {
  std::deque<GroupedStacks> sides;
  sides.emplace_back(snapshot_, before, options_, budget_);
  sides.emplace_back(snapshot_, after, options_, budget_);
  DiffSide before_side;
  DiffSide after_side;
  const std::unique_ptr<ProfileTree> tree =
      build_tree(sides, namer, {{&before_side, &before_side.processes}, {&after_side, &after_side.processes}});
  if (tree == nullptr) return budget_.error();
  return diff(*tree, std::move(before_side), std::move(after_side), diff_options);
}

std::unique_ptr<ProfileTree> ProfileBuilder::build_tree(Sides& sides, FrameNamer& namer,
                                                        const std::vector<Described>& described) {
  for (const GroupedStacks& stacks : sides) shown_.show(stacks.side());
  for (GroupedStacks& stacks : sides) {
    if (!stacks.add_up(states_, shown_)) return nullptr;
  }
  shown_.name(namer);
  if (!budget_.check()) return nullptr;
  intern_markers();
  placed_.assign(std::max<std::size_t>(snapshot_.tree.nodes.limit(), 1), kNone);

  auto tree = std::make_unique<ProfileTree>(frame_table_, root_frame(sides), budget_.limits().nodes, sides.size());
  for (std::size_t side = 0; side < sides.size(); ++side) {
    *described[side].facts = sides[side].facts();
    for (std::size_t part = 0; part < sides[side].parts(); ++part) {
      add_part(*tree, side, sides[side], part, described[side].facts->quality);
      if (!budget_.check()) return nullptr;
    }
  }
  const bool was_cut = tree->was_cut();
  if (options_.focus || options_.ignore || options_.hide) tree = tree->filtered(options_, sides.front().is_grouped());
  bool root_missing = false;
  if (!options_.root.empty()) {
    std::unique_ptr<ProfileTree> subtree = tree->subtree(options_.root);
    root_missing = subtree == nullptr;
    if (root_missing) {
      const std::uint32_t root = frame_table_.intern(root_frame_of(options_.root.back()));
      subtree = std::make_unique<ProfileTree>(frame_table_, root, 1, sides.size());
    }
    tree = std::move(subtree);
  }
  for (std::size_t side = 0; side < sides.size(); ++side) {
    const Described& of = described[side];
    *of.processes = sides[side].processes();
    std::vector<std::string>& warnings = of.facts->warnings;
    sides[side].warn_of_reused_pid(*of.processes, warnings);
    if (was_cut) {
      warnings.emplace_back(
          "The answer would have been too large: where it was, inner frames are left out and their time is shown as "
          "their caller's. A single process or a shorter window is shown in full.");
    }
    const bool is_empty = total_samples(*tree, side) == 0;
    if (root_missing || (is_empty && !options_.root.empty())) {
      warnings.emplace_back("Nothing in the window stands below the path that is asked for as root.");
    } else if (is_empty) {
      sides[side].warn_of_emptiness(of.facts->quality, warnings);
    }
  }
  return tree;
}

std::uint32_t ProfileBuilder::root_frame(const Sides& sides) {
  std::string name = sides.front().root_name();
  if (sides.back().root_name() != name) name = "all";
  return frame_table_.intern(root_frame_of(std::move(name)));
}

void ProfileBuilder::intern_markers() {
  for (std::size_t reason = 0; reason < kTruncationCount; ++reason) {
    markers_[reason] = frame_table_.intern(
        marker_frame("[truncated: " + std::string(describe(static_cast<Truncation>(reason))) + "]"));
  }
  border_ = frame_table_.intern(marker_frame("--"));
}

/// Adds the subtree of one part, and its share of the quality.
void ProfileBuilder::add_part(ProfileTree& tree, std::size_t side, GroupedStacks& stacks, std::size_t part,
                              Quality& quality) {
  touched_.clear();
  stacks.for_each_stack(part, [&](StackRef ref, const GroupedStacks::Total& total) {
    if (touched_.empty()) {  // a part without stacks has no node
      const bool grouped = stacks.is_grouped();
      placed_[kEmptyStack.value] = grouped ? tree.child(0, frame_table_.intern(root_frame_of(stacks.label(part)))) : 0;
      touched_.push_back(kEmptyStack.value);
    }
    std::uint32_t node = place(tree, stacks.side(), ref.stack.value);
    if (ref.cut) node = tree.child(node, markers_[static_cast<std::size_t>(Truncation::kStoreFull)]);
    tree.add_self(node, total.samples, total.ns, side);
    states_.count(ref, total.samples, quality);
  });
  for (const std::uint32_t node : touched_) placed_[node] = kNone;
}

/// The answer's node for a call-tree node, in the current part.
std::uint32_t ProfileBuilder::place(ProfileTree& tree, Side side, std::uint32_t node) {
  path_.clear();
  for (; placed_[node] == kNone; node = snapshot_.tree.nodes[node].caller.value) path_.push_back(node);
  std::uint32_t at = placed_[node];
  for (std::size_t i = path_.size(); i-- > 0;) {
    const CallNode& call = snapshot_.tree.nodes[path_[i]];
    const std::span<const std::uint32_t> chain = shown_.chain(call.frame);
    if (chain.empty()) {
      // Each side has the mark of what is missing of it.
      const Frame& mark = snapshot_.tree.frames[call.frame.value];
      const bool kernel = mark.offset == static_cast<std::uint64_t>(Truncation::kKernelDepthLimit);
      if (mark.module == kTruncatedModule && (side == Side::kBoth || kernel == (side == Side::kKernel))) {
        at = tree.child(at, markers_[mark.offset]);
      }
    } else if (side == Side::kBoth || shows(side, snapshot_.tree.frames[call.frame.value])) {
      if (options_.delimited && side == Side::kBoth &&
          snapshot_.tree.frames[call.frame.value].module == kKernelModule) {
        const StackState caller = states_.of(call.caller);
        if (caller.has_user() && !caller.has_kernel()) at = tree.child(at, border_);
      }
      for (const std::uint32_t frame : chain) at = tree.child(at, frame);
    }
    placed_[path_[i]] = at;
    touched_.push_back(path_[i]);
  }
  return at;
}

}  // namespace flamed::store
