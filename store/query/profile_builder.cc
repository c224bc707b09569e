// SPDX-License-Identifier: Apache-2.0
#include "store/query/profile_builder.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/keyed_hash.h"

namespace flamed::store {
namespace {

NamedFrame root_frame_of(std::string name) { return {std::move(name), "", FrameKind::kRoot, ""}; }

std::uint64_t total_samples(const ProfileTree& tree, std::size_t side) {
  std::uint64_t samples = 0;
  for (std::uint32_t node = 0; node < tree.size(); ++node) samples += tree.own(node, side);
  return samples;
}

}  // namespace

ProfileBuilder::ProfileBuilder(const SnapshotData& snapshot, const ProfileOptions& options, FrameNamer& namer,
                               QueryBudget& budget)
    : snapshot_(snapshot),
      options_(options),
      namer_(namer),
      budget_(budget),
      index_(namer.kept_index(), options, budget.limits().nodes, snapshot.until),
      seen_(snapshot.tree),
      placed_(index_->places()) {
  index_->follow(snapshot.tree);
}

Result<Profile> ProfileBuilder::build(const Selection& selection) {
  std::deque<GroupedStacks> sides;
  sides.emplace_back(snapshot_, selection, options_, budget_, index_->counters());
  Profile profile;
  std::unique_ptr<ProfileTree> tree = build_tree(sides, {{&profile, &profile.processes}});
  if (tree == nullptr) return budget_.error();
  if (auto pruned = tree->pruned(options_.min_percent, options_.max_nodes)) tree = std::move(pruned);
  if (!budget_.check()) return budget_.error();
  std::move(*tree).finish(profile);
  return profile;
}

Result<ProfileDiff> ProfileBuilder::build_diff(const Selection& before, const Selection& after,
                                               const DiffOptions& diff_options) {
  std::deque<GroupedStacks> sides;
  sides.emplace_back(snapshot_, before, options_, budget_, index_->counters());
  sides.emplace_back(snapshot_, after, options_, budget_, index_->counters());
  DiffSide before_side;
  DiffSide after_side;
  const std::unique_ptr<ProfileTree> tree =
      build_tree(sides, {{&before_side, &before_side.processes}, {&after_side, &after_side.processes}});
  if (tree == nullptr) return budget_.error();
  return diff(*tree, std::move(before_side), std::move(after_side), diff_options);
}

std::unique_ptr<ProfileTree> ProfileBuilder::build_tree(Sides& sides, const std::vector<Described>& described) {
  for (const GroupedStacks& stacks : sides) seen_.show(stacks.side());
  for (GroupedStacks& stacks : sides) {
    if (!stacks.add_up(index_->states(), seen_)) return nullptr;
  }
  index_->name(seen_.ids(), namer_);
  if (!budget_.check()) return nullptr;
  for (const GroupedStacks& stacks : sides) {
    trees_.push_back(&index_->tree({stacks.side(), options_.delimited}));
    same_tree_ = same_tree_ && trees_.back() == trees_.front();
  }
  frames_ = std::make_unique<FrameTable>(index_->functions());
  frames_->reserve(std::min(seen_.ids().size(), index_->functions().size()));
  for (const std::uint32_t id : seen_.ids()) {
    for (const std::uint32_t variant : index_->shown().chain(id)) frames_->see(variant);
  }

  auto tree = std::make_unique<ProfileTree>(*frames_, root_frame(sides), budget_.limits().nodes, sides.size());
  const auto has_less = [](const GroupedStacks& a, const GroupedStacks& b) { return a.size() < b.size(); };
  // One or more nodes per stack. Untouched memory costs nothing.
  tree->reserve(2 * std::max_element(sides.begin(), sides.end(), has_less)->size());
  for (std::size_t side = 0; side < sides.size(); ++side) *described[side].facts = sides[side].facts();
  if (!add_parts(*tree, sides, described)) return nullptr;
  const bool was_cut = tree->was_cut() || index_->was_cut();
  if (options_.focus || options_.ignore || options_.hide) tree = tree->filtered(options_, sides.front().is_grouped());
  bool root_missing = false;
  if (!options_.root.empty()) {
    std::unique_ptr<ProfileTree> subtree = tree->subtree(options_.root);
    root_missing = subtree == nullptr;
    if (root_missing) {
      const std::uint32_t root = frames_->intern(root_frame_of(options_.root.back()));
      subtree = std::make_unique<ProfileTree>(*frames_, root, 1, sides.size());
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
      warnings.emplace_back("Nothing in the window is below the path given as root.");
    } else if (is_empty) {
      sides[side].warn_of_emptiness(of.facts->quality, warnings);
    }
  }
  return tree;
}

std::uint32_t ProfileBuilder::root_frame(const Sides& sides) {
  std::string name = sides.front().root_name();
  if (sides.back().root_name() != name) name = "all";
  return frames_->intern(root_frame_of(std::move(name)));
}

bool ProfileBuilder::add_parts(ProfileTree& tree, Sides& sides, const std::vector<Described>& described) {
  std::vector<std::unordered_map<std::string_view, std::size_t, KeyedTextHash>> parts(
      sides.size());  // by label, for later sides
  for (std::size_t side = 1; side < sides.size(); ++side) {
    for (std::size_t part = 0; part < sides[side].parts(); ++part) parts[side].emplace(sides[side].label(part), part);
  }
  for (std::size_t first = 0; first < sides.size(); ++first) {
    for (std::size_t part = 0; part < sides[first].parts(); ++part) {
      const std::string& label = sides[first].label(part);
      if (first != 0 && parts[first].erase(label) == 0) continue;  // was added with an earlier side's
      add_part(tree, first, sides[first], part, described[first].facts->quality);
      for (std::size_t side = first + 1; side < sides.size(); ++side) {
        const auto same = parts[side].find(label);
        if (same == parts[side].end()) continue;
        if (!same_tree_) leave_part();
        add_part(tree, side, sides[side], same->second, described[side].facts->quality);
        parts[side].erase(same);
      }
      leave_part();
      if (!budget_.check()) return false;
    }
  }
  return true;
}

void ProfileBuilder::add_part(ProfileTree& tree, std::size_t side, GroupedStacks& stacks, std::size_t part,
                              Quality& quality) {
  FunctionTree& functions = *trees_[side];
  stacks.for_each_stack(part, [&](StackRef ref, std::uint64_t samples) {
    const std::uint32_t end = functions.node_of(ref);
    if (placed_.size() < functions.size()) placed_.resize(functions.size());
    if (placed_[0] == 0) {  // a part without stacks has no node
      const bool grouped = stacks.is_grouped();
      touched_.push_back(0);
      placed_[0] = 1 + (grouped ? tree.child(0, frames_->intern(root_frame_of(stacks.label(part)))) : 0);
    }
    tree.add_self(place(tree, functions, end), samples, side);
    index_->states().count(ref, samples, quality);
  });
}

/// The answer's node for a node of the FunctionTree, in the current part.
std::uint32_t ProfileBuilder::place(ProfileTree& tree, const FunctionTree& functions, std::uint32_t node) {
  path_.clear();
  for (; placed_[node] == 0; node = functions.parent(node)) path_.push_back(node);
  std::uint32_t at = placed_[node] - 1;
  for (std::size_t i = path_.size(); i-- > 0;) {
    const std::uint32_t frame = frames_->of(functions.function(path_[i]));
    // With one FunctionTree, an unplaced node is new. With two, the other one may have added it.
    const bool repeats = functions.repeats(path_[i]);
    at = same_tree_ ? tree.add(at, frame, repeats) : tree.child(at, frame, repeats);
    touched_.push_back(path_[i]);
    placed_[path_[i]] = 1 + at;
  }
  return at;
}

void ProfileBuilder::leave_part() {
  for (const std::uint32_t node : touched_) placed_[node] = 0;
  touched_.clear();
}

}  // namespace flamed::store
