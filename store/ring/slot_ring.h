// SPDX-License-Identifier: Apache-2.0
//
// SlotRing: the slots, over one call tree and one table each of threads and processes. It opens, seals and drops slots,
// counts stacks in them, and makes room where the budgets are short of it.
//
// The writer's: all calls under the store's lock. Must not outlive the clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "store/containers/budget.h"
#include "store/model/quality.h"
#include "store/ring/call_tree.h"
#include "store/ring/fair_division.h"
#include "store/ring/process_table.h"
#include "store/ring/sealed_slots.h"
#include "store/ring/slot.h"
#include "store/ring/slot_sums.h"
#include "store/ring/snapshot_data.h"
#include "store/ring/standing_waits.h"
#include "store/ring/store.h"
#include "store/ring/thread_table.h"

namespace flamed::store {

/// What a drain brings is stored before anything is sealed; this is for what is older than it should be.
inline constexpr std::int64_t kSealDelayNs = 5 * kNsPerSecond;

class SlotRing {
 public:
  using OpenSlots = std::deque<std::unique_ptr<OpenSlot>>;

  /// What is counted of a stack: a sample, or waiting time in units of kWaitUnitNs.
  struct Amount {
    std::uint32_t units = 1;
    bool is_waiting = false;
    MonotonicTime from{}, to{};  ///< of waiting: when that was

    [[nodiscard]] OpenSlot& part_of(OpenSlot& slot) const { return is_waiting ? slot.waits() : slot; }
  };
  /// Where it was counted.
  struct Place {
    std::uint32_t thread = 0;
    StackRef ref{};
  };

  SlotRing(const Limits& limits, const Clock& clock, std::int64_t period_ns);
  SlotRing(const SlotRing&) = delete;
  SlotRing& operator=(const SlotRing&) = delete;

  /// Sampling begins now.
  void begin() { began_ = clock_.monotonic(); }

  // -- Counting ------------------------------------------------------------------------------------------------------

  /// The open slot that something of `time` belongs to, opened if need be. Null when that is older than anything
  /// retained; at least one slot is open then. What belongs to a sealed slot goes to the oldest open one.
  OpenSlot* slot_for(MonotonicTime time);
  /// Oldest first. Empty until the first slot_for().
  [[nodiscard]] const OpenSlots& open() const { return open_; }
  /// Something of this time has come.
  void reached(MonotonicTime time) { latest_ = std::max(latest_, time); }
  /// Sampling had begun by then.
  void began_by(MonotonicTime time) { began_ = std::min(began_, time); }

  /// Interns the stack and counts it in the slot, in exactly one bucket of its quality. Makes room for it, which may
  /// seal the slot. Empty: it was lost.
  std::optional<Place> add(OpenSlot* slot, const StackSample& sample, Amount amount);
  /// Counts a stack that is known. False: there is no room. `sample` is that of a sample, otherwise its owner counts.
  bool count(OpenSlot& slot, std::uint32_t thread, StackRef ref, const StackSample& sample, Amount amount,
             OpenSlot::Room room = OpenSlot::Room::kOrdinary);
  void lose(OpenSlot& slot, Loss reason, std::uint64_t count);

  // -- What slots refer to -------------------------------------------------------------------------------------------

  [[nodiscard]] const CallTree& tree() const { return tree_; }
  [[nodiscard]] const ThreadTable& threads() const { return threads_; }
  /// Their threads and stacks are kept as if each slot referred to them.
  [[nodiscard]] StandingWaits& standing_waits() { return standing_; }
  /// The slot refers to them.
  void mark_used(OpenSlot& slot, std::uint32_t thread, StackRef ref);

  bool end_process(ProcessId id, WallTime ended) { return processes_.end(id, ended, next_sequence_); }
  void update_process(const ProcessInfo& info);

  // -- Slots ---------------------------------------------------------------------------------------------------------

  void set_period_ns(std::int64_t period_ns, MonotonicTime from);
  /// See Store::advance(). `asked_back`: bytes that are to be freed beyond that. True: slots were sealed.
  bool advance(MonotonicTime now, std::size_t asked_back);
  /// Seals all slots.
  void finish(MonotonicTime now);
  /// See Store::await_sealed(). `lock` is the store's.
  std::optional<std::uint32_t> await_sealed(std::unique_lock<std::mutex>& lock, std::uint32_t sequence,
                                            const std::stop_token& stop, std::chrono::nanoseconds longest) const;
  /// See Store::take_live_modules(). Needs no lock.
  std::optional<std::vector<ModuleId>> take_live_modules();

  // -- Readers -------------------------------------------------------------------------------------------------------

  /// Fills what it knows of it.
  void show(SnapshotData& data);
  void describe(StoreStats& stats) const;
  /// How often sealed slots were replaced by smaller ones.
  [[nodiscard]] std::uint64_t times_thinned() const { return times_thinned_; }

 private:
  [[nodiscard]] WallTime start_of(const SlotBounds& bounds) const {
    return {std::max(bounds.start, began_).ns + bounds.wall_offset_ns};
  }
  void open_slot(MonotonicTime time, std::optional<MonotonicTime> previous_end);
  /// Ends an open slot early. What it already counted stays inside its bounds.
  void close(OpenSlot& slot, MonotonicTime now) const;
  void seal_oldest();
  /// Seals what is open, unless that has only just begun: a minute goes into few pieces.
  bool seal_early();
  void drop_oldest();
  /// Keeps the sample of a pair that was counted. The oldest minute's samples make room for the newest's; a log that
  /// alone is larger than all of the room is given up.
  void keep(OpenSlot& slot, std::uint32_t entry, const StackSample& sample);
  /// Likewise, waiting time.
  void keep_wait(OpenSlot& slot, std::uint32_t entry, const Amount& amount);
  void count_logs(StoreStats& stats) const;

  /// Lets go of what there is most of: of those who have more than a share, 1/`share` of what is theirs in sealed
  /// slots; if there is nobody, of the oldest 1/`share` of these slots, at least one. What only that named is
  /// reclaimed. False when there was nothing to go. `share` is for the next time: where little came of it, twice as
  /// much is to go then. Open slots may be sealed by it.
  bool make_room(std::size_t& share, std::optional<std::uint32_t> wanted_by);
  bool let_go(std::size_t share, std::optional<std::uint32_t> wanted_by);
  [[nodiscard]] bool is_somebody_over() const { return !division_.shares().over().empty(); }
  bool take_from_largest(std::size_t share);
  [[nodiscard]] std::size_t held_bytes() const { return budget_.used_bytes() + log_budget_.used_bytes(); }
  void let_go_of(std::size_t bytes);
  void sweep(bool even_running_processes);

  /// Counts a stack that found no room as what there is of it: the callers that the tree knows, or fewer when the slot
  /// has no room either, down to none at all: then it is still known whose time it was.
  std::optional<Place> count_cut(OpenSlot& slot, std::uint32_t thread, CallTree::Interned interned,
                                 const StackSample& sample, Amount amount);
  std::optional<Place> store_without_room(OpenSlot& slot, std::optional<std::uint32_t> thread,
                                          CallTree::Interned interned, const StackSample& sample, Amount amount);
  void count_truncated(OpenSlot& slot, Truncation reason);

  const Limits limits_;
  const Clock& clock_;
  MonotonicTime began_;  ///< or the time of a sample that is older
  std::int64_t period_ns_;
  Budget log_budget_;
  Budget budget_;
  const std::shared_ptr<SlotSums> sums_;
  const std::shared_ptr<SlotSums> side_sums_;
  Budget tree_budget_;
  CallTree tree_;
  ProcessTable processes_;
  ThreadTable threads_;
  FairDivision division_;
  StandingWaits standing_;
  SealedSlots sealed_;
  OpenSlots open_;
  std::uint32_t next_sequence_ = 1;
  std::uint32_t newest_sealed_ = 0;
  mutable std::condition_variable_any has_sealed_;
  MonotonicTime latest_{std::numeric_limits<std::int64_t>::min()};
  std::size_t dropped_since_sweep_ = 0;
  std::uint64_t dropped_for_age_ = 0;
  std::uint64_t dropped_for_budget_ = 0;
  std::uint64_t dropped_for_memory_ = 0;
  std::uint64_t given_back_ = 0;
  std::uint64_t times_thinned_ = 0;
  std::optional<WallTime> budget_dropped_until_;
  std::optional<WallTime> memory_dropped_until_;
  Quality total_;
  bool frames_reclaimed_ = false;
};

}  // namespace flamed::store
