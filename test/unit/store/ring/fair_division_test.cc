// SPDX-License-Identifier: Apache-2.0
#include "store/ring/fair_division.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "test/catch.h"

namespace flamed::store {
namespace {

constexpr std::uint32_t kLarge = 1001;
constexpr std::uint32_t kSmall = 1002;
constexpr MonotonicTime kNow{100 * kNsPerMinute};

/// A tree, tables and one open slot, divided among users, without a store.
struct Divided {
  Divided() { open_next(); }

  void open_next() {
    const SlotBounds bounds{{sequence * kNsPerMinute}, {(sequence + 1) * kNsPerMinute}};
    open.emplace(budget, log_budget, bounds, sequence++);
  }
  /// A stack of `depth` frames that nobody had before. False: there is no room.
  bool add_new(std::uint32_t user, std::size_t depth) {
    std::vector<Frame> frames;
    while (frames.size() < depth) frames.push_back({ModuleId{16}, ++unique});
    const auto pid = static_cast<std::int32_t>(user);
    const auto thread = threads.intern({pid, 1}, pid, "thread", {user, false}, false, open->sequence);
    const CallTree::Interned found = tree.intern({}, frames);
    if (!thread || !found.whole) return false;
    if (open->count(*thread, {found.stack}, OpenSlot::Room::kOrdinary).counted != OpenSlot::Counted::kFirstTime) {
      return false;
    }
    tree.mark_used(found.stack, open->sequence, division.note_first_seen(user));
    threads.mark_used(*thread, open->sequence);
    ++open->quality.whole;
    return true;
  }
  void seal() {
    SealedSlot sealed = open->seal();
    open.reset();
    division.note_sealed(*sealed.slot);
    slots.push(std::move(sealed));
    open_next();
  }
  /// Minutes of both, until one user's new stacks leave little room. Returns how many stacks that user has.
  std::uint64_t fill() {
    std::uint64_t stacks = 0;
    while (!division.is_due()) {
      for (int i = 0; i < 20; ++i) stacks += add_new(kLarge, 40) ? 1 : 0;
      add_new(kSmall, 5);
      seal();
    }
    division.judge(false);
    return stacks;
  }

  Budget budget{2U << 20};
  Budget log_budget{1U << 20};
  Budget tree_budget{3U << 19, &budget};
  CallTree tree{tree_budget};
  ProcessTable processes{budget};
  ThreadTable threads{budget, processes};
  FairDivision division{budget, tree_budget, tree, threads, processes};
  SealedSlots slots{budget, log_budget};
  std::optional<OpenSlot> open;
  std::uint32_t sequence = 1;
  std::uint64_t unique = 0;
};

}  // namespace

TEST_CASE("nobody has more than a share while there is room") {
  Divided t;
  REQUIRE(t.add_new(kLarge, 40));
  REQUIRE(t.add_new(kSmall, 5));
  t.seal();
  CHECK_FALSE(t.division.is_due());
  t.division.judge(false);
  CHECK(t.division.shares().over().empty());
  CHECK_FALSE(t.division.hold_back_from(kLarge));
  CHECK_FALSE(t.division.take_from_largest(1, t.slots, kNow));
}

TEST_CASE("the last room is kept from who has more than a share, and from nobody else") {
  Divided t;
  t.fill();
  CHECK(t.division.shares().is_over(kLarge));
  CHECK_FALSE(t.division.shares().is_over(kSmall));
  CHECK_FALSE(t.division.hold_back_from(kSmall));
  CHECK_FALSE(t.budget.holds_back());
  CHECK(t.division.hold_back_from(kLarge));
  CHECK(t.budget.holds_back());
  CHECK(t.tree_budget.holds_back());
  t.division.hold_nothing_back();
  CHECK_FALSE(t.tree_budget.holds_back());
}

TEST_CASE("a part of the largest user's stacks goes, from the oldest slots") {
  Divided t;
  t.fill();
  REQUIRE(t.slots.size() > 8);
  REQUIRE(t.division.take_from_largest(8, t.slots, kNow));
  CHECK(t.slots[0].slot->edition == 1);
  CHECK(t.slots[t.slots.size() - 1].slot->edition == 0);
  CHECK(t.slots[0].slot->quality.whole == 1);
  CHECK(t.slots[0].slot->quality.truncated[static_cast<std::size_t>(Truncation::kUserShare)] == 20);
  const std::vector<GivenUp> given_up = t.division.shares().given_up();
  REQUIRE(given_up.size() == 1);
  CHECK(given_up.front().user == kLarge);
  CHECK(t.division.shares().losers_since(kNow) == std::vector<std::uint32_t>{kLarge});
}

TEST_CASE("room comes of the stacks that were given up when the tree is swept") {
  Divided t;
  const std::uint64_t stacks = t.fill();
  const std::size_t nodes = t.tree.node_count();
  while (t.division.shares().is_over(kLarge) && t.division.take_from_largest(1, t.slots, kNow)) {
    t.division.sweep(t.slots.oldest().sequence, {0});
    t.division.judge(false);
  }
  CHECK(t.division.losses().stacks_given_up == stacks);
  CHECK(t.tree.node_count() < nodes / 10);
  CHECK_FALSE(t.division.has_something_to_give(kLarge));
  CHECK_FALSE(t.division.is_short());
}

TEST_CASE("slots that were dropped are no longer counted as their users'") {
  Divided t;
  t.fill();
  CHECK(t.division.has_something_to_give(kLarge));
  while (!t.slots.empty()) {
    t.division.note_dropped(t.slots.oldest());
    t.slots.drop_oldest();
  }
  CHECK_FALSE(t.division.has_something_to_give(kLarge));
  CHECK_FALSE(t.division.has_something_to_give(kSmall));
  t.division.sweep(t.open->sequence, {0});
  t.division.judge(false);
  CHECK(t.division.shares().over().empty());
}

TEST_CASE("a sample that was cut is a loss of its user's") {
  Divided t;
  t.fill();
  t.division.note_cut(kLarge, t.open->bounds, kNow);
  CHECK(t.division.losses().stacks_cut == 1);
  CHECK(t.division.shares().losers_since(kNow) == std::vector<std::uint32_t>{kLarge});
}

}  // namespace flamed::store
