// SPDX-License-Identifier: Apache-2.0
//
// SealedSlots: the ring of sealed slots, the oldest first, and what they take of the budgets. Writer only, but for the
// view. Must not outlive its budgets.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "store/containers/budget.h"
#include "store/ring/slot.h"

namespace flamed::store {

class SealedSlots {
 public:
  /// Logs have a budget of their own.
  SealedSlots(Budget& budget, Budget& log_budget) : budget_(budget), log_budget_(log_budget) {}
  SealedSlots(const SealedSlots&) = delete;
  SealedSlots& operator=(const SealedSlots&) = delete;

  /// Without asking whether there is room.
  void push(SealedSlot sealed);
  void drop_oldest();
  /// Drops the logs of the oldest slot that may have some. False: there is no such slot.
  bool drop_oldest_log();

  /// make(the slot as it is) returns what takes its place: the same minute with less in it. Its bytes are free
  /// meanwhile.
  template <typename F>
  void replace(std::size_t place, F&& make) {
    SealedSlot& sealed = slots_[place];
    give_back(sealed);
    sealed = make(std::as_const(sealed));
    take(sealed);
    view_ = nullptr;
  }

  [[nodiscard]] bool empty() const { return slots_.empty(); }
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  [[nodiscard]] const SealedSlot& operator[](std::size_t place) const { return slots_[place]; }
  [[nodiscard]] const Slot& oldest() const { return *slots_.front().slot; }

  /// The slots as they stand, for a snapshot. One view serves until a slot comes, goes or changes.
  [[nodiscard]] std::shared_ptr<const std::vector<SealedSlot>> view();

  // Of all slots.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }  ///< without their logs
  [[nodiscard]] std::size_t entry_count() const { return entries_; }
  [[nodiscard]] std::size_t logged_samples() const { return logged_samples_; }
  [[nodiscard]] std::size_t logged_waits() const { return logged_waits_; }

 private:
  void take(const SealedSlot& sealed);
  void give_back(const SealedSlot& sealed);
  void give_back_logs(const SealedSlot& sealed);

  Budget& budget_;
  Budget& log_budget_;
  std::deque<SealedSlot> slots_;
  std::shared_ptr<const std::vector<SealedSlot>> view_;  ///< null: to be made
  std::size_t without_log_ = 0;                          ///< of the oldest in slots_
  std::size_t bytes_ = 0;
  std::size_t entries_ = 0;
  std::size_t logged_samples_ = 0;
  std::size_t logged_waits_ = 0;
};

}  // namespace flamed::store
