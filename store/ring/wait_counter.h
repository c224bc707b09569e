// SPDX-License-Identifier: Apache-2.0
//
// WaitCounter: counts waiting time in slots, from what visits of threads find. The wait that a thread is in stands in
// a table (standing_waits.h) until it is over; then it is known which part of it belongs to which slot.
//
// The writer's: all calls under the store's lock. Must not outlive the SlotRing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "store/model/wait_reason.h"
#include "store/model/waits_seen.h"
#include "store/ring/slot.h"
#include "store/ring/slot_ring.h"
#include "store/ring/standing_waits.h"
#include "store/ring/store.h"

namespace flamed::store {

class WaitCounter {
 public:
  explicit WaitCounter(SlotRing& ring) : ring_(ring) {}

  // See Store::add_wait() and so on. False: nothing is known of the thread's wait.
  void add(const WaitSample& wait);
  bool correct(const StackSample& sample);
  bool end(std::int32_t tid, MonotonicTime time);
  void set_seen(MonotonicTime time, const LateOwners& late) { seen_ = {std::max(seen_.all, time), late}; }
  [[nodiscard]] const WaitsSeen& seen() const { return seen_; }

 private:
  /// Whole units of the time; the rest is for the next time.
  static std::uint32_t units_of(std::int64_t ns, std::int64_t& rest_ns);
  /// Time that was waited since `since`, at the latest when the sample was taken.
  std::optional<SlotRing::Place> store(const StackSample& sample, MonotonicTime since, std::uint32_t units);
  /// Time that no visit has seen: why is known, where is not.
  void store_unseen(const StackSample& sample, WaitReason reason, MonotonicTime since, std::uint32_t units);
  /// Counts the wait from its beginning to `until` in the open slots. What is older than these is a long wait.
  void count_span(StandingWait& wait, MonotonicTime until);
  void count_long_wait(OpenSlot& slot, StandingWait& wait, MonotonicTime until);
  void count_units(OpenSlot& slot, const StandingWait& wait, SlotRing::Amount amount);
  /// Replaces the stack of the thread's wait.
  void replace_stack(const StandingWait& known, const StackSample& sample);

  SlotRing& ring_;
  WaitsSeen seen_;
};

}  // namespace flamed::store
