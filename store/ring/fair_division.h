// SPDX-License-Identifier: Apache-2.0
//
// FairDivision: divides the store's budgets among users. It counts what each has of the call tree, the tables and the
// slots; where there is little room it finds who has more than a share (user_shares.h), keeps the last room from them,
// and takes their oldest stacks out of sealed slots. Writer only. Must not outlive what it is made of.
//
// It is told of every slot: note_first_seen() while the slot is open, note_sealed(), note_dropped().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "store/containers/budget.h"
#include "store/ring/call_tree.h"
#include "store/ring/process_table.h"
#include "store/ring/sealed_slots.h"
#include "store/ring/slot.h"
#include "store/ring/thread_table.h"
#include "store/ring/user_shares.h"

namespace flamed::store {

class FairDivision {
 public:
  /// Samples of users who had more than a share while others needed room.
  struct Losses {
    std::uint64_t stacks_given_up = 0;  ///< their stacks went
    std::uint64_t dropped = 0;          ///< what was left of them went, too
    std::uint64_t stacks_cut = 0;       ///< they came while the user had no room for new stacks
  };

  /// `budget` is that of all, `tree_budget` the part of it that the tree may take.
  FairDivision(Budget& budget, Budget& tree_budget, CallTree& tree, ThreadTable& threads, const ProcessTable& processes)
      : budget_(budget), tree_budget_(tree_budget), tree_(tree), threads_(threads), processes_(processes) {
    watch_from(0, 0);
  }
  FairDivision(const FairDivision&) = delete;
  FairDivision& operator=(const FairDivision&) = delete;

  // -- What users have -----------------------------------------------------------------------------------------------

  /// What stacks of the user's are to be marked with.
  UserTag tag_of(std::uint32_t user) { return shares_.tag_of(user); }
  /// A pair of thread and stack of the user's is new in an open slot. What the stack is to be marked with.
  UserTag note_first_seen(std::uint32_t user) {
    const UserTag tag = shares_.tag_of(user);
    ++shares_[tag].open_entries;
    return tag;
  }
  void note_sealed(const Slot& slot);
  /// A sealed slot goes. Its threads are still there.
  void note_dropped(const Slot& slot);
  /// A sample that came while room was held back from its user was cut, or lost.
  void note_cut(std::uint32_t user, const SlotBounds& bounds, MonotonicTime now);

  // -- Who has more than a share -------------------------------------------------------------------------------------

  /// Less room is left than what is kept for users who have no more than a share.
  [[nodiscard]] bool is_short() const { return budget_.used_bytes() > soft_limit_of(budget_); }
  /// So much has come since the last judge() that it may find something else.
  [[nodiscard]] bool is_due() const {
    return tree_budget_.used_bytes() > tree_watched_ || budget_.used_bytes() > watched_ ||
           (tree_.is_tight() && tree_.node_count() > nodes_watched_);
  }
  /// Finds out who has more than a share, as far as there is little room; `is_full`: something found none.
  void judge(bool is_full);
  /// As the last judge() found.
  [[nodiscard]] const UserShares& shares() const { return shares_; }

  // -- What is done about it -----------------------------------------------------------------------------------------

  /// Keeps the last room from the user, until hold_nothing_back(), if the user has more than a share. False: has not.
  bool hold_back_from(std::uint32_t user) {
    if (!shares_.is_over(user)) return false;
    budget_.hold_back(reserve_of(budget_));
    tree_budget_.hold_back(reserve_of(tree_budget_));
    return true;
  }
  void hold_nothing_back() {
    budget_.hold_back(0);
    tree_budget_.hold_back(0);
  }

  /// Is it worth looking in sealed slots for what the user could lose?
  [[nodiscard]] bool has_something_to_give(std::uint32_t user) const;
  /// Who has most above a share loses 1/`share` of the stacks that are the user's in sealed slots, the oldest first,
  /// and of what is left of older ones what is too much. False: nobody who has more than a share has anything there.
  /// Room comes of it with sweep().
  bool take_from_largest(std::size_t share, SealedSlots& slots, MonotonicTime now);
  [[nodiscard]] const Losses& losses() const { return losses_; }

  /// Reclaims nodes and threads that no slot needs any more, and forgets users who have nothing. `oldest` is the oldest
  /// slot that is held, which begins at `start`. True when a frame was reclaimed.
  bool sweep(std::uint32_t oldest, WallTime start);

 private:
  enum class What : std::uint8_t { kStacks, kRest };

  [[nodiscard]] UserShares::User& owner_of(std::uint32_t thread) {
    return shares_[shares_.find(threads_[thread].owner)];
  }
  template <typename F>
  void for_each_user_of(const Slot& slot, F&& change);
  /// What note_dropped() takes back.
  void note_put(const Slot& slot);
  [[nodiscard]] UserShares::Held rows_of_users();
  [[nodiscard]] UserShares::Resource divide(const Budget& budget, const UserShares::Held& held) const;
  void give_up(UserTag tag, What what, std::size_t bytes, SealedSlots& slots, MonotonicTime now);

  /// Users who have less than this are not hurried.
  [[nodiscard]] std::size_t few_bytes() const { return budget_.limit_bytes() / 8; }
  /// is_due() when the tree has more than `tree`, or there is more than `all`, and little room is left.
  void watch_from(std::size_t tree, std::size_t all);
  /// What users who have more than a share leave to the others, so that these find room within a minute.
  [[nodiscard]] std::size_t reserve_of(const Budget& budget) const {
    return budget.limit_bytes() / (&budget == &tree_budget_ ? kTreeReserveShare : kReserveShare);
  }
  [[nodiscard]] std::size_t soft_limit_of(const Budget& budget) const {
    return budget.limit_bytes() - reserve_of(budget);
  }

  static constexpr std::size_t kReserveShare = 16;
  static constexpr std::size_t kTreeReserveShare = 32;

  Budget& budget_;
  Budget& tree_budget_;
  CallTree& tree_;
  ThreadTable& threads_;
  const ProcessTable& processes_;
  UserShares shares_;
  std::size_t tree_watched_ = 0;   ///< with more than this the tree's shares are to be looked at,
  std::size_t watched_ = 0;        ///< and with this those of all;
  std::size_t nodes_watched_ = 0;  ///< or with more nodes than these, where there is no room for many more
  Losses losses_;
};

}  // namespace flamed::store
