// SPDX-License-Identifier: Apache-2.0
#include "store/ring/call_tree.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "test/catch.h"

namespace flamed::store {
namespace {

constexpr std::size_t kPlenty = 64U << 20;

Frame code(std::uint64_t offset, std::uint32_t module = 16) { return {ModuleId{module}, offset}; }

std::vector<Frame> frames_of(const CallTree::View& view, StackId stack) {
  std::vector<Frame> frames;
  for (; stack != kEmptyStack; stack = view.nodes[stack.value].caller) {
    frames.push_back(view.frames[view.nodes[stack.value].frame.value]);
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

}  // namespace

TEST_CASE("equal stacks are one, and stacks share their callers") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  std::vector<Frame> abc{code(1), code(2), code(3)};
  std::vector<Frame> abd{code(1), code(2), code(4)};
  StackId first = tree.intern({}, abc).stack;
  CHECK(tree.intern({}, abc).stack == first);
  StackId second = tree.intern({}, abd).stack;
  CHECK(second != first);
  CHECK(tree.node_count() == 5);  // the root, a, b, c, d
  CHECK(tree.frame_count() == 4);
  CHECK(frames_of(tree.view(), second) == abd);
}

TEST_CASE("a stack without frames is the root") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  CHECK(tree.intern({}, {}).stack == kEmptyStack);
  CHECK(tree.intern({}, {}).whole);
}

TEST_CASE("a truncated stack begins at the marker of its reason and differs from every other stack") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  std::vector<Frame> frames{code(1), code(2)};
  StackId whole = tree.intern({}, frames).stack;
  StackId deep = tree.intern(Truncation::kDepthLimit, frames).stack;
  StackId broken = tree.intern(Truncation::kBrokenFramePointer, frames).stack;
  CHECK(whole != deep);
  CHECK(deep != broken);
  CHECK(frames_of(tree.view(), broken).front() ==
        Frame{kTruncatedModule, static_cast<std::uint64_t>(Truncation::kBrokenFramePointer)});
  CHECK(tree.intern(Truncation::kDepthLimit, frames).stack == deep);
}

TEST_CASE("a stack has its own frames and one id, whatever was interned before") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  std::mt19937 random(1);
  std::map<std::pair<std::optional<Truncation>, std::vector<Frame>>, StackId> known;
  const std::optional<Truncation> reasons[] = {std::nullopt, Truncation::kDepthLimit, Truncation::kNoMapping};
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    // The next stack usually returns from a few functions and calls others, some with the same outer frames.
    frames.resize(random() % 50 == 0 ? random() % 4
                                     : frames.size() - std::min<std::size_t>(frames.size(), random() % 8));
    for (auto callees = random() % 9; callees > 0 && frames.size() < 200; --callees) {
      frames.push_back(code(random() % 3, 16 + random() % 2));
    }
    const std::optional<Truncation> reason = reasons[random() % std::size(reasons)];
    const auto [stack, whole] = tree.intern(reason, frames);
    REQUIRE(whole);
    const auto [entry, is_new] = known.try_emplace({reason, frames}, stack);
    REQUIRE(entry->second == stack);
    if (i % 5000 == 4999) {  // ids of swept stacks are reused
      tree.sweep(2);
      known.clear();
    }
    if (i % 100 != 0) continue;
    std::vector<Frame> expected = frames;
    if (reason) expected.insert(expected.begin(), Frame{kTruncatedModule, static_cast<std::uint64_t>(*reason)});
    REQUIRE(frames_of(tree.view(), stack) == expected);
  }
}

TEST_CASE("a sweep reclaims exactly the stacks that no retained slot names") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  std::vector<Frame> old{code(1), code(2), code(3, 17)};
  std::vector<Frame> recent{code(1), code(4), code(5)};
  StackId old_stack = tree.intern({}, old).stack;
  tree.mark_used(old_stack, 1);
  tree.mark_used(tree.intern({}, recent).stack, 2);
  CHECK(tree.modules() == std::vector<ModuleId>{ModuleId{16}, ModuleId{17}});
  CHECK(tree.sweep(2));
  CHECK(tree.node_count() == 4);
  CHECK(tree.frame_count() == 3);
  CHECK(tree.modules() == std::vector<ModuleId>{ModuleId{16}});
  CHECK(frames_of(tree.view(), tree.intern({}, recent).stack) == recent);
  CHECK_FALSE(tree.sweep(2));
}

TEST_CASE("a caller lives as long as its youngest callee, in whatever order they were marked") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  std::vector<Frame> caller{code(1), code(2)};
  std::vector<Frame> callee{code(1), code(2), code(3)};
  StackId deep = tree.intern({}, callee).stack;
  tree.mark_used(deep, 7);
  tree.mark_used(tree.intern({}, caller).stack, 6);  // a late sample for the slot before
  tree.sweep(7);
  CHECK(frames_of(tree.view(), deep) == callee);
}

TEST_CASE("over years of slots a stack goes with the last slot that named it, or a little later") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  constexpr std::uint32_t kRetained = 1440;
  std::vector<Frame> always{code(1), code(2)};
  for (std::uint32_t slot = 1; slot < 100'000; ++slot) {
    tree.mark_used(tree.intern({}, always).stack, slot);
    std::vector<Frame> own{code(1), code(1'000'000 + slot)};
    tree.mark_used(tree.intern({}, own).stack, slot);
    if (slot < kRetained || slot % 500 != 0) continue;
    tree.sweep(slot - kRetained + 1);
    const std::size_t stacks = tree.node_count() - 3;  // the root, and the two frames of `always`
    REQUIRE(stacks >= kRetained);
    REQUIRE(stacks <= kRetained + (kRetained + 500) / 96);
  }
}

TEST_CASE("without sweeps stacks keep their marks") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  std::vector<StackId> stacks;
  for (std::uint32_t slot = 1; slot <= 2000; ++slot) {
    std::vector<Frame> own{code(slot)};
    stacks.push_back(tree.intern({}, own).stack);
    tree.mark_used(stacks.back(), slot);
  }
  tree.sweep(1001);
  REQUIRE(tree.node_count() >= 1 + 1000);
  CHECK(tree.node_count() <= 1 + 1000 + 2000 / 96);
  CHECK(frames_of(tree.view(), stacks[1000]) == std::vector<Frame>{code(1001)});
}

TEST_CASE("ids of reclaimed stacks are reused, and earlier views do not change") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  std::vector<Frame> old{code(1), code(2)};
  StackId stack = tree.intern({}, old).stack;
  tree.mark_used(stack, 1);
  CallTree::View before = tree.view();
  tree.sweep(2);
  CHECK(tree.node_count() == 1);
  std::vector<Frame> fresh{code(8), code(9)};
  StackId reused = tree.intern({}, fresh).stack;
  CHECK(reused == stack);
  CHECK(frames_of(before, stack) == old);
  CHECK(frames_of(tree.view(), stack) == fresh);
}

TEST_CASE("a user's stacks are reclaimed, except for those that other users have too") {
  constexpr UserTag kOne = 1;
  constexpr UserTag kOther = 2;
  Budget budget(kPlenty);
  CallTree tree(budget);
  const std::vector<Frame> own{code(1), code(2)};
  const std::vector<Frame> common{code(1), code(3)};
  const std::vector<Frame> late{code(4)};
  tree.mark_used(tree.intern({}, own).stack, 1, kOne);
  const StackId shared = tree.intern({}, common).stack;
  tree.mark_used(shared, 1, kOne);
  CHECK(tree.nodes_of_users()[kOne] == 3);
  tree.mark_used(shared, 1, kOther);
  CHECK(tree.nodes_of_users()[kOne] == 1);
  CHECK(tree.nodes_of_users()[kSeveral] == 2);
  const StackId kept = tree.intern({}, late).stack;
  tree.mark_used(kept, 3, kOne);
  const CallTree::OldestOf oldest{kOne, 2};
  tree.sweep(1, std::span(&oldest, 1));
  CHECK(tree.nodes_of_users()[kOne] == 1);
  CHECK(tree.node_count() == 4);  // the root, 1, 3, 4
  CHECK(frames_of(tree.view(), shared) == common);
  CHECK(frames_of(tree.view(), kept) == late);
  tree.sweep(4);
  CHECK(tree.nodes_of_users()[kOne] == 0);
  CHECK(tree.nodes_of_users()[kSeveral] == 0);
}

TEST_CASE("a stack's outermost frame is its reason for truncation, in every way to read it") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  const std::vector<Frame> outer{code(1), code(2)};
  const std::vector<Frame> inner{code(1), code(2), code(3)};
  const StackId whole = tree.intern({}, inner).stack;
  const StackId deep = tree.intern(Truncation::kDepthLimit, inner).stack;
  const StackId less_deep = tree.intern(Truncation::kDepthLimit, outer).stack;
  std::vector<std::uint8_t> known;
  for (int again = 0; again < 2; ++again) {
    CHECK_FALSE(tree.truncation_of(kEmptyStack, known));
    CHECK_FALSE(tree.truncation_of(whole, known));
    CHECK(tree.truncation_of(less_deep, known) == Truncation::kDepthLimit);
    CHECK(tree.truncation_of(deep, known) == Truncation::kDepthLimit);
  }
  const std::optional<StackId> given_up = tree.given_up();
  REQUIRE(given_up);
  CHECK(tree.truncation_of(*given_up, known) == Truncation::kUserShare);
  CHECK(tree.given_up() == given_up);
  tree.sweep(2);
  CHECK(tree.given_up() == given_up);
  CHECK(tree.node_count() == 2);
}

TEST_CASE("without room a stack is cut to its known callers") {
  Budget budget(400U << 10);
  CallTree tree(budget);
  std::vector<Frame> frames;
  std::uint64_t offset = 0;
  CallTree::Interned last;
  std::vector<Frame> outer{code(1), code(2)};
  StackId known = tree.intern({}, outer).stack;
  do {
    frames = {code(1), code(2), code(1000 + offset++)};
    last = tree.intern({}, frames);
  } while (last.whole && offset < 10'000'000);
  REQUIRE_FALSE(last.whole);
  CHECK(last.stack == known);
  CHECK(budget.used_bytes() <= budget.limit_bytes());
}

TEST_CASE("memory of a past peak is freed") {
  Budget budget(kPlenty);
  CallTree tree(budget);
  std::size_t before = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    std::vector<Frame> frames{code(1), code(i)};
    tree.mark_used(tree.intern({}, frames).stack, 1);
    if (i == 100) before = budget.used_bytes();
  }
  CHECK(budget.used_bytes() > 10 * before);
  tree.sweep(2);
  CHECK(budget.used_bytes() <= before);
}

}  // namespace flamed::store
