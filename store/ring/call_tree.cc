// SPDX-License-Identifier: Apache-2.0
#include "store/ring/call_tree.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <unordered_set>

#include "base/keyed_hash.h"

namespace flamed::store {
namespace {

Frame marker(Truncation reason) { return {kTruncatedModule, static_cast<std::uint64_t>(reason)}; }

constexpr CallTree::NodeStamp stamp_of(Generations::Stamp generation, UserTag user) {
  return static_cast<CallTree::NodeStamp>((unsigned{generation} << 8) | user);
}
constexpr Generations::Stamp generation_of(CallTree::NodeStamp stamp) {
  return static_cast<Generations::Stamp>(stamp >> 8);
}
constexpr UserTag user_of(CallTree::NodeStamp stamp) { return static_cast<UserTag>(stamp & 0xff); }

}  // namespace

CallTree::CallTree(Budget& budget)
    : budget_(budget),
      key_(random_hash_key()),
      nodes_(budget),
      node_index_(budget),
      frames_(budget),
      frame_index_(budget),
      recent_(std::bit_floor(std::max<std::size_t>(budget.limit_bytes() / 256 / sizeof(Recent), 64))) {
  budget_.take(recent_.size() * sizeof(Recent));
  std::optional<std::uint32_t> root = nodes_.allocate();
  if (!root || *root != kEmptyStack.value) std::abort();  // Store ensures a budget with room for one chunk
  nodes_.writable(*root) = CallNode{kEmptyStack, FrameId{0}};
}

CallTree::~CallTree() { budget_.give_back(recent_.size() * sizeof(Recent)); }

std::uint64_t CallTree::hash_all(std::optional<Truncation> truncation, std::span<const Frame> frames) {
  const auto below = [this](std::uint64_t hash, const Frame& frame) {
    return hash_with(hash, frame.offset, key_ ^ ((std::uint64_t{frame.module.value} + 1) * 0x9e3779b97f4a7c15ULL));
  };
  hashes_.clear();
  std::uint64_t hash = mix(key_);
  if (truncation) hash = below(hash, marker(*truncation));
  for (const Frame& frame : frames) {
    hash = below(hash, frame);
    hashes_.push_back(hash);
  }
  return hash;
}

std::uint64_t CallTree::hash_of(const Frame& frame) const {
  return mix((frame.offset ^ key_) + frame.module.value * 0x9e3779b97f4a7c15ULL);
}

std::uint64_t CallTree::hash_of(const CallNode& node) {
  return mix((std::uint64_t{node.caller.value} << 32) | node.frame.value);
}

std::optional<FrameId> CallTree::intern_frame(const Frame& frame) {
  std::uint64_t hash = hash_of(frame);
  std::uint32_t found = frame_index_.find(hash, [&](std::uint32_t id) { return Frame(frames_[id]) == frame; });
  if (found != IdIndex::kNone) return FrameId{found};
  if (!frame_index_.make_room([&](std::uint32_t id) { return hash_of(frames_[id]); })) return std::nullopt;
  std::optional<std::uint32_t> id = frames_.allocate();
  if (!id) return std::nullopt;
  frames_.writable(*id) = PackedFrame(frame);
  frame_index_.insert(hash, *id);
  return FrameId{*id};
}

std::optional<StackId> CallTree::intern_child(StackId caller, const Frame& frame) {
  std::optional<FrameId> frame_id = intern_frame(frame);
  if (!frame_id) return std::nullopt;
  CallNode node{caller, *frame_id};
  std::uint64_t hash = hash_of(node);
  std::uint32_t found = node_index_.find(hash, [&](std::uint32_t id) {
    const CallNode& other = nodes_[id];
    return other.caller == node.caller && other.frame == node.frame;
  });
  if (found != IdIndex::kNone) return StackId{found};
  if (!node_index_.make_room([&](std::uint32_t id) { return hash_of(nodes_[id]); })) return std::nullopt;
  std::optional<std::uint32_t> id = nodes_.allocate();
  if (!id) return std::nullopt;
  nodes_.writable(*id) = node;
  node_index_.insert(hash, *id);
  return StackId{*id};
}

std::optional<StackId> CallTree::find_recent(std::uint64_t hash) {
  const Recent& known = recent(hash);
  if (known.hash != hash) return std::nullopt;
  return known.stack;
}

CallTree::Interned CallTree::intern(std::optional<Truncation> truncation, std::span<const Frame> frames) {
  const std::uint64_t hash = hash_all(truncation, frames);
  if (const std::optional<StackId> known = find_recent(hash)) return {*known, true};

  StackId stack = kEmptyStack;
  std::size_t depth = frames.empty() ? 0 : (frames.size() - 1) / kBetweenRecent * kBetweenRecent;
  for (; depth > 0; depth -= kBetweenRecent) {
    const std::optional<StackId> known = find_recent(hashes_[depth - 1]);
    if (!known) continue;
    stack = *known;
    break;
  }
  if (depth == 0 && truncation) {
    std::optional<StackId> child = intern_child(stack, marker(*truncation));
    if (!child) return {stack, false};
    stack = *child;
  }
  while (depth < frames.size()) {
    std::optional<StackId> child = intern_child(stack, frames[depth]);
    if (!child) return {stack, false};
    stack = *child;
    ++depth;
    if (depth % kBetweenRecent == 0) remember(hashes_[depth - 1], stack);
  }
  remember(hash, stack);
  return {stack, true};
}

void CallTree::mark_used(StackId stack, std::uint32_t sequence, UserTag user) {
  newest_sequence_ = std::max(newest_sequence_, sequence);
  if (!generations_.reaches(sequence)) renumber({oldest_sequence_, newest_sequence_});
  const Generations::Stamp generation = generations_.of(sequence);
  // A caller's generation is never older than its callee's, and its user is the callee's or kSeveral: new nodes begin
  // at 0 and every walk updates the whole path.
  while (stack != kEmptyStack) {
    const NodeStamp stamp = nodes_.stamp(stack.value);
    const UserTag known = user_of(stamp);
    const bool is_theirs = known == user || known == kSeveral;
    if (is_theirs && generation_of(stamp) >= generation) return;
    UserTag now = known;
    if (!is_theirs) {
      now = known == kUnused ? user : kSeveral;
      if (known != kUnused) --nodes_of_[known];
      ++nodes_of_[now];
    }
    nodes_.set_stamp(stack.value, stamp_of(std::max(generation_of(stamp), generation), now));
    stack = nodes_[stack.value].caller;
  }
}

std::optional<StackId> CallTree::given_up() {
  if (given_up_ == kEmptyStack) {
    given_up_ = intern_child(kEmptyStack, marker(Truncation::kUserShare)).value_or(kEmptyStack);
  }
  return given_up_ == kEmptyStack ? std::nullopt : std::optional(given_up_);
}

std::optional<Truncation> CallTree::truncation_of(StackId stack, std::vector<std::uint8_t>& known) const {
  constexpr std::uint8_t kWhole = 1;  // 0: not known yet; above: the reason
  if (stack == kEmptyStack) return std::nullopt;
  known.resize(nodes_.limit());
  std::uint32_t node = stack.value;
  while (known[node] == 0 && nodes_[node].caller != kEmptyStack) node = nodes_[node].caller.value;
  if (known[node] == 0) {
    const Frame outermost = frames_[nodes_[node].frame.value];
    known[node] =
        outermost.module != kTruncatedModule ? kWhole : static_cast<std::uint8_t>(kWhole + 1 + outermost.offset);
  }
  const std::uint8_t state = known[node];
  for (node = stack.value; known[node] == 0; node = nodes_[node].caller.value) known[node] = state;
  if (state == kWhole) return std::nullopt;
  return static_cast<Truncation>(state - kWhole - 1);
}

std::optional<Truncation> CallTree::truncation_of(StackId stack) const {
  if (stack == kEmptyStack) return std::nullopt;
  std::uint32_t node = stack.value;
  while (nodes_[node].caller != kEmptyStack) node = nodes_[node].caller.value;
  const Frame outermost = frames_[nodes_[node].frame.value];
  if (outermost.module != kTruncatedModule) return std::nullopt;
  return static_cast<Truncation>(outermost.offset);
}

void CallTree::mark_hidden(std::uint32_t sequence) {
  if (hidden_ == kEmptyStack) hidden_ = intern_child(kEmptyStack, {kHiddenModule, 0}).value_or(kEmptyStack);
  mark_used(hidden_, sequence);
}

void CallTree::renumber(Generations to) {
  nodes_.for_each([&](std::uint32_t id) {
    const NodeStamp stamp = nodes_.stamp(id);
    const Generations::Stamp generation = generation_of(stamp);
    if (generation == Generations::kNever) return;
    nodes_.set_stamp(id, stamp_of(to.of(generations_.last_of(generation)), user_of(stamp)));
  });
  generations_ = to;
}

bool CallTree::sweep(std::uint32_t oldest_sequence, std::span<const OldestOf> oldest_of) {
  recent_.assign(recent_.size(), Recent{});
  std::array<std::uint32_t, kUserTags> oldest_by_user;
  oldest_by_user.fill(oldest_sequence);
  for (const OldestOf& of : oldest_of) oldest_by_user[of.user] = std::max(of.sequence, oldest_sequence);
  std::vector<bool> named(frames_.limit());
  nodes_.for_each([&](std::uint32_t id) {
    if (id == kEmptyStack.value) return;
    const NodeStamp stamp = nodes_.stamp(id);
    const UserTag user = user_of(stamp);
    if (id != given_up_.value && generations_.is_before(generation_of(stamp), oldest_by_user[user])) {
      if (id == hidden_.value) hidden_ = kEmptyStack;
      if (user != kUnused) --nodes_of_[user];
      nodes_.release(id);
    } else {
      named[nodes_[id].frame.value] = true;
    }
  });
  nodes_.trim();
  node_index_.reset(nodes_.size());
  nodes_.for_each([&](std::uint32_t id) {
    if (id != kEmptyStack.value) node_index_.insert(hash_of(nodes_[id]), id);
  });
  oldest_sequence_ = oldest_sequence;
  newest_sequence_ = std::max(newest_sequence_, oldest_sequence);
  renumber({oldest_sequence_, newest_sequence_});

  std::size_t before = frames_.size();
  frames_.for_each([&](std::uint32_t id) {
    if (!named[id]) frames_.release(id);
  });
  frames_.trim();
  frame_index_.reset(frames_.size());
  frames_.for_each([&](std::uint32_t id) { frame_index_.insert(hash_of(frames_[id]), id); });
  return frames_.size() != before;
}

std::vector<ModuleId> CallTree::modules() {
  std::unordered_set<ModuleId> seen;
  frames_.for_each([&](std::uint32_t id) {
    ModuleId module = frames_[id].module;
    if (module != kTruncatedModule && module != kHiddenModule) seen.insert(module);
  });
  std::vector<ModuleId> sorted(seen.begin(), seen.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace flamed::store
