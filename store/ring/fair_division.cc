// SPDX-License-Identifier: Apache-2.0
#include "store/ring/fair_division.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace flamed::store {
namespace {

// A user's stacks go by such parts of them at least: each time the whole tree is gone through.
constexpr std::size_t kMostGivenUpShare = 16;
// What is left of a user's minutes without their stacks may be this part of all that is the user's.
constexpr std::size_t kThinShare = 8;
// About what a row takes with its place in an index.
constexpr std::size_t kOpenEntryBytes = sizeof(HistogramEntry) + 6;
constexpr std::size_t kThreadBytes = sizeof(ThreadRecord) + 10;
constexpr std::size_t kProcessBytes = sizeof(ProcessRecord) + 40;
/// In front of each thread's stacks in a histogram.
constexpr std::size_t kGroupBytes = 3;

double fullness_of(const Budget& budget) {
  return static_cast<double>(budget.used_bytes()) / static_cast<double>(budget.limit_bytes());
}

}  // namespace

/// change(what is accounted to a user, bytes) for the threads of a sealed slot.
template <typename F>
void FairDivision::for_each_user_of(const Slot& slot, F&& change) {
  slot.histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
    UserShares::User& user = owner_of(thread);
    change(slot.sequence > user.thinned_through ? user.stack_bytes : user.thin_bytes, bytes.size() + kGroupBytes);
  });
  for (const LongWait& wait : slot.long_waits) {
    UserShares::User& user = owner_of(wait.thread);
    change(slot.sequence > user.thinned_through ? user.stack_bytes : user.thin_bytes, sizeof(LongWait));
  }
  if (slot.waits != nullptr) for_each_user_of(*slot.waits, change);
}

void FairDivision::note_put(const Slot& slot) {
  for_each_user_of(slot, [](std::size_t& bytes, std::size_t more) { bytes += more; });
}

void FairDivision::note_sealed(const Slot& slot) {
  note_put(slot);
  const auto close = [&](std::uint32_t thread, std::span<const std::uint8_t>, std::size_t stacks) {
    std::size_t& open = owner_of(thread).open_entries;
    open -= std::min(open, stacks);
  };
  slot.histogram.for_each_thread_counted(close);
  if (slot.waits != nullptr) slot.waits->histogram.for_each_thread_counted(close);
}

void FairDivision::note_dropped(const Slot& slot) {
  // A user who had no tag when the slot was sealed may have one by now.
  for_each_user_of(slot, [](std::size_t& bytes, std::size_t less) { bytes -= std::min(bytes, less); });
}

void FairDivision::note_cut(std::uint32_t user, const SlotBounds& bounds, MonotonicTime now) {
  ++losses_.stacks_cut;
  shares_.note_given_up(shares_.find(user), bounds.wall_start(), bounds.wall_end(), now);
}

void FairDivision::watch_from(std::size_t tree, std::size_t all) {
  tree_watched_ = std::max(tree, soft_limit_of(tree_budget_));
  watched_ = std::max(all, soft_limit_of(budget_));
}

void FairDivision::judge(bool is_full) {
  const std::size_t tree_bytes = tree_budget_.used_bytes();
  const std::size_t all_bytes = budget_.used_bytes();
  watch_from(tree_bytes + tree_budget_.limit_bytes() / 64, all_bytes + budget_.limit_bytes() / 64);
  nodes_watched_ = tree_.node_count() + tree_.node_count() / 64;
  const bool is_tree_fuller = fullness_of(tree_budget_) > fullness_of(budget_);
  const bool is_tree_short =
      tree_bytes > soft_limit_of(tree_budget_) || tree_.is_tight() || (is_full && is_tree_fuller);
  const bool is_all_short = is_short() || (is_full && !is_tree_fuller);
  if (!is_tree_short && !is_all_short) {
    shares_.acquit();
    return;
  }
  static_cast<void>(tree_.given_up());  // while there is room for it
  UserShares::Held held{};
  const std::size_t node_bytes = tree_bytes / std::max<std::size_t>(tree_.node_count(), 1);
  for (std::size_t tag = 0; tag < kUserTags; ++tag) held[tag] = tree_.nodes_of_users()[tag] * node_bytes;
  std::vector<UserShares::Resource> short_ones;
  if (is_tree_short) short_ones.push_back(divide(tree_budget_, held));
  if (is_all_short) {
    const UserShares::Held rows = rows_of_users();
    for (std::size_t tag = 0; tag < kUserTags; ++tag) {
      const UserShares::User& user = shares_[static_cast<UserTag>(tag)];
      held[tag] += rows[tag] + user.stack_bytes + user.thin_bytes + user.open_entries * kOpenEntryBytes;
    }
    short_ones.push_back(divide(budget_, held));
  }
  shares_.judge(short_ones);
}

/// What users have of a budget, and what there is for all of them: not what they have in common.
UserShares::Resource FairDivision::divide(const Budget& budget, const UserShares::Held& held) const {
  std::size_t of_users = 0;
  for (std::size_t tag = kUnused + 1; tag < kSeveral; ++tag) of_users += held[tag];
  const std::size_t used = budget.used_bytes();
  const std::size_t common = used - std::min(used, of_users);
  const std::size_t room = std::min(soft_limit_of(budget), used - used / kTreeReserveShare);
  return {held, room - std::min(room, common)};
}

/// Bytes of threads and their processes.
UserShares::Held FairDivision::rows_of_users() {
  UserShares::Held bytes{};
  threads_.for_each([&](const ThreadRecord& thread) {
    const std::size_t threads = std::max<std::size_t>(processes_[thread.process].threads, 1);
    bytes[shares_.find(thread.owner)] += kThreadBytes + kProcessBytes / threads;
  });
  return bytes;
}

bool FairDivision::has_something_to_give(std::uint32_t user) const {
  const UserShares::User& of = shares_[shares_.find(user)];
  return of.stack_bytes != 0 || of.thin_bytes > few_bytes() / kThinShare;
}

bool FairDivision::take_from_largest(std::size_t share, SealedSlots& slots, MonotonicTime now) {
  for (const UserTag tag : shares_.over()) {
    const UserShares::User& user = shares_[tag];
    const bool has_stacks = user.stack_bytes != 0;
    if (has_stacks) give_up(tag, What::kStacks, user.stack_bytes / std::min(share, kMostGivenUpShare), slots, now);
    const std::size_t thin = user.thin_bytes + rows_of_users()[tag];
    const std::size_t all = thin + user.stack_bytes + tree_.nodes_of_users()[tag] * sizeof(CallNode);
    const bool is_too_much = user.thin_bytes != 0 && thin > std::max(all, few_bytes()) / kThinShare;
    if (is_too_much) give_up(tag, What::kRest, user.thin_bytes / 4, slots, now);
    if (has_stacks || is_too_much) return true;
  }
  return false;
}

/// Takes a user's stacks out of the oldest sealed slots, or the rest out of those that have none any more: so many
/// bytes, or a little more.
void FairDivision::give_up(UserTag tag, What what, std::size_t bytes, SealedSlots& slots, MonotonicTime now) {
  UserShares::User& user = shares_[tag];
  const bool everything = what == What::kRest;
  std::vector<std::uint8_t> known;
  std::uint64_t samples = 0;
  Thinning how{[&](std::uint32_t thread) { return shares_.find(threads_[thread].owner) == tag; },
               {},
               [&](StackRef ref) -> std::optional<Truncation> {
                 return ref.cut ? Truncation::kStoreFull : tree_.truncation_of(ref.stack, known);
               }};
  std::uint32_t& through = everything ? user.dropped_through : user.thinned_through;
  std::size_t& held = everything ? user.thin_bytes : user.stack_bytes;
  const std::size_t target = held - std::min(held, std::max<std::size_t>(bytes, 1));
  for (std::size_t place = 0; place < slots.size() && held > target; ++place) {
    const std::shared_ptr<const Slot> old = slots[place].slot;
    if (old->sequence <= through) continue;
    if (everything && old->sequence > user.thinned_through) break;
    const std::size_t before = held;
    note_dropped(*old);
    through = old->sequence;
    if (held != before) {
      slots.replace(place, [&](const SealedSlot& sealed) {
        if (!everything) {
          // Without room for what says so, it is said as of a stack that found none.
          const std::optional<StackId> mark = tree_.given_up();
          how.instead = mark ? StackRef{*mark} : StackRef{kEmptyStack, true};
        }
        return thin(sealed, how, samples);
      });
      shares_.note_given_up(tag, old->bounds.wall_start(), old->bounds.wall_end(), now);
      if (everything) user.given_up->dropped_until = old->bounds.wall_end();
    }
    note_put(*slots[place].slot);
  }
  if (held > target) held = 0;  // whatever was accounted: there is no more
  (everything ? losses_.dropped : losses_.stacks_given_up) += samples;
}

bool FairDivision::sweep(std::uint32_t oldest, WallTime start) {
  std::vector<CallTree::OldestOf> oldest_of;
  for (std::size_t tag = kUnused + 1; tag < kSeveral; ++tag) {
    const std::uint32_t through = shares_[static_cast<UserTag>(tag)].thinned_through;
    if (through >= oldest) oldest_of.push_back({static_cast<UserTag>(tag), through + 1});
  }
  const bool is_frame_reclaimed = tree_.sweep(oldest, oldest_of);
  threads_.sweep([&](std::uint32_t user) { return std::max(oldest, shares_[shares_.find(user)].dropped_through + 1); });
  shares_.forget_unused(tree_.nodes_of_users(), oldest, start);
  return is_frame_reclaimed;
}

}  // namespace flamed::store
