// SPDX-License-Identifier: Apache-2.0
//
// SlotSelection: the samples of a snapshot's slots in a selection's window and threads: the histograms of whole
// minutes, and the single samples of minutes that are partly in the window. It also collects the facts about the
// quality of the answer. A local of one query; must not outlive the snapshot, the selection, and the budget.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "store/index/stack_states.h"
#include "store/model/answer_facts.h"
#include "store/model/query_budget.h"
#include "store/model/wait_reason.h"
#include "store/query/stack_reason.h"
#include "store/query/thread_filter.h"
#include "store/ring/histogram.h"
#include "store/ring/slot.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

/// One thread's stacks in one slot. Views into the snapshot or the SlotSelection.
class ThreadStacks {
 public:
  /// `weight` is the weight of each sample, `instead` the stack that is shown instead of each, if any. `without_idle`:
  /// the tree, if stacks of threads that wait for work are left out; else null.
  ThreadStacks(std::span<const std::uint8_t> packed, std::uint64_t weight, std::optional<StackId> instead = {},
               const CallTree::View* without_idle = nullptr)
      : weight_(weight), packed_(packed), instead_(instead), without_idle_(without_idle) {}
  ThreadStacks(std::span<const HistogramEntry> entries, std::uint64_t weight, std::optional<StackId> instead = {},
               const CallTree::View* without_idle = nullptr)
      : weight_(weight), entries_(entries), instead_(instead), without_idle_(without_idle) {}

  /// visit(StackRef, count)
  template <typename F>
  void for_each(F&& visit) const {
    const auto show = [&](StackRef ref, std::uint64_t count) {
      if (without_idle_ != nullptr && is_idle(ref)) return;
      visit(instead_ ? StackRef{*instead_} : ref, count * weight_);
    };
    for (const HistogramEntry& entry : entries_) show(StackRef::from_key(entry.stack_key), entry.count);
    Histogram::for_each_stack(packed_, show);
  }

 private:
  std::uint64_t weight_ = 1;
  std::span<const std::uint8_t> packed_;
  std::span<const HistogramEntry> entries_;
  std::optional<StackId> instead_;
  const CallTree::View* without_idle_;

  [[nodiscard]] bool is_idle(StackRef ref) const {
    const std::optional<WaitReason> reason = reason_of(*without_idle_, ref);
    return reason && store::is_idle(*reason);
  }
};

class SlotSelection {
 public:
  /// The slots to use.
  enum class Want : std::uint8_t {
    kCounts,  ///< all slots: for_each_thread()
    kSamples  ///< those with logs, without a gap up to the newest: for_each_sample_of(), for_each_wait_of()
  };

  SlotSelection(const SnapshotData& snapshot, const Selection& selection, QueryBudget& budget,
                Want want = Want::kCounts);
  SlotSelection(const SlotSelection&) = delete;
  SlotSelection& operator=(const SlotSelection&) = delete;

  /// Number of used slots, oldest first.
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  [[nodiscard]] bool empty() const { return slots_.empty(); }
  /// All with AnswerFacts::period_ns: counts are in units of it.
  [[nodiscard]] const SlotBounds& bounds(std::size_t slot) const { return slots_[slot].bounds; }
  /// The weight of each sample of the slot.
  [[nodiscard]] std::uint64_t weight(std::size_t slot) const { return slots_[slot].weight; }
  /// Whether the slot has single samples, or single waits.
  [[nodiscard]] bool is_exact(std::size_t slot) const { return slots_[slot].exact; }
  /// Whether it has waiting time.
  [[nodiscard]] bool is_waiting(std::size_t slot) const { return slots_[slot].is_waiting; }
  /// How far apart times are known: 1 with single samples or waits.
  [[nodiscard]] std::int64_t resolution_ns(std::size_t slot) const {
    const Touched& touched = slots_[slot];
    if (touched.exact) return 1;
    return touched.sealed != nullptr ? touched.sealed->slot->resolution_ns : kNsPerMinute;
  }
  /// For answers that tell threads apart: warns if some slots don't.
  void warn_of_threads();
  /// Times of the earliest and the latest sample of an exact slot, cut to the window.
  [[nodiscard]] std::pair<MonotonicTime, MonotonicTime> sample_times(std::size_t slot) const {
    const Touched& touched = slots_[slot];
    return {std::max(touched.first, touched.from), std::min(touched.last, MonotonicTime{touched.to.ns - 1})};
  }

  /// visit(thread, const ThreadStacks&); its arguments stay valid as long as this object. False: the budget is
  /// exhausted.
  template <typename F>
  [[nodiscard]] bool for_each_thread_of(std::size_t index, F&& visit) {
    Touched& slot = slots_[index];
    if (!slot.is_whole()) {
      if (!extract(slot)) return false;
      for (std::size_t i = 0; i < slot.entries.size();) {
        const std::size_t begin = i;
        while (i < slot.entries.size() && slot.entries[i].thread == slot.entries[begin].thread) ++i;
        visit(slot.entries[begin].thread,
              ThreadStacks(std::span<const HistogramEntry>(slot.entries).subspan(begin, i - begin), slot.weight,
                           instead_of(slot.entries[begin].thread), without_idle()));
      }
      return true;
    }
    const Histogram& histogram = slot.sealed->slot->histogram;
    if (!budget_.visit(filter_.wants_all() ? histogram.entry_count() : 1)) return false;
    bool go_on = true;
    histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
      if (!go_on || !filter_.wants(thread)) return;
      if (!filter_.wants_all()) go_on = budget_.visit(bytes.size() / 2 + 1);
      visit(thread, ThreadStacks(bytes, slot.weight, instead_of(thread), without_idle()));
    });
    return go_on;
  }
  /// visit(const SlotBounds&, thread, const ThreadStacks&), slot after slot. False: the budget is exhausted.
  template <typename F>
  [[nodiscard]] bool for_each_thread(F&& visit) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const auto visit_thread = [&](std::uint32_t thread, const ThreadStacks& stacks) {
        visit(slots_[i].bounds, thread, stacks);
      };
      if (!for_each_thread_of(i, visit_thread)) return false;
    }
    return true;
  }

  /// visit(const SlotBounds&, process, const ThreadStacks&): a process is visited once for each of its threads, or, if
  /// its threads are selected together, once for a run of slots whose sum is known. Queries about everything make the
  /// sums. False: the budget is exhausted.
  template <typename F>
  [[nodiscard]] bool for_each_process(F&& visit) {
    for (std::size_t i = 0; i < slots_.size();) {
      const SlotBounds& bounds = slots_[i].bounds;
      std::size_t used = 1;
      const std::shared_ptr<const Histogram> sum = sum_at(i, used);
      if (budget_.exhausted()) return false;
      if (sum != nullptr) {
        if (!budget_.visit(filter_.wants_all() ? sum->entry_count() : 1)) return false;
        sum->for_each_thread([&](std::uint32_t process, std::span<const std::uint8_t> bytes) {
          if (filter_.wants_process(process))
            visit(bounds, process, ThreadStacks(bytes, slots_[i].weight, {}, without_idle()));
        });
      } else {
        const auto visit_thread = [&](std::uint32_t thread, const ThreadStacks& stacks) {
          visit(bounds, snapshot_.threads[thread].process, stacks);
        };
        if (!for_each_thread_of(i, visit_thread)) return false;
      }
      i += used;
    }
    return true;
  }

  /// The samples of each process on each side, in a slot that is selected whole: visit(process, in_kernel, samples),
  /// with the slot's weight. Counts the stored samples in `quality`. False: not known without reading the stacks; then
  /// nothing was visited or counted.
  template <typename F>
  [[nodiscard]] bool for_each_side_of(std::size_t slot, Side asked, StackStates& states, Quality& quality, F&& visit) {
    const std::shared_ptr<const Histogram> sides = sides_of(slot, asked, states);
    if (sides == nullptr) return false;
    count_stored(slot, quality);
    sides->for_each_thread([&](std::uint32_t process, std::span<const std::uint8_t> bytes) {
      Histogram::for_each_stack(bytes, [&](StackRef side, std::uint64_t count) {
        visit(process, side.stack == kKernelSide, count * slots_[slot].weight);
      });
    });
    return true;
  }

  /// Waiting time of one wait in the window: `from` and `to` are cut to it.
  struct PartOfWait {
    WallTime from, to;
    std::uint64_t units = 0;  ///< of AnswerFacts::period_ns
  };
  /// Visits the single waits of an exact slot of waiting time: visit(const PartOfWait&, thread, StackRef). False: the
  /// budget is exhausted.
  template <typename F>
  [[nodiscard]] bool for_each_wait_of(std::size_t index, F&& visit) {
    const Touched& slot = slots_[index];
    if (!read_pairs(slot)) return false;
    const std::int64_t offset_ns = slot.bounds.wall_offset_ns;
    for_each_logged_wait(slot, [&](const LoggedWait& wait) {
      const Pair& pair = pairs_[wait.entry];
      if (!pair.wanted) return;
      for_each_part_of(slot, wait, [&](MonotonicTime from, MonotonicTime to, std::uint64_t units) {
        visit(PartOfWait{{from.ns + offset_ns}, {to.ns + offset_ns}, units * slot.weight}, pair.thread,
              StackRef::from_key(pair.stack_key));
      });
    });
    return budget_.check();
  }

  /// Visits the single samples of an exact slot, of an open one in the order of arrival, each with weight(index):
  /// visit(const LoggedSample&, thread, StackRef). False: the budget is exhausted.
  template <typename F>
  [[nodiscard]] bool for_each_sample_of(std::size_t index, F&& visit) {
    const Touched& slot = slots_[index];
    if (!read_pairs(slot)) return false;
    const auto visit_wanted = [&](const LoggedSample& sample) {
      if (!is_in_part(slot, sample)) return;
      const Pair& pair = pairs_[sample.entry];
      if (pair.wanted) visit(sample, pair.thread, StackRef::from_key(pair.stack_key));
    };
    if (slot.open != nullptr) {
      slot.open->log.for_each(slot.from, slot.to, visit_wanted);
    } else {
      slot.sealed->log->for_each(slot.from, slot.to, visit_wanted);
    }
    return budget_.check();
  }

  /// Lost samples of all processes in the slot.
  [[nodiscard]] std::uint64_t lost(std::size_t slot) const { return slots_[slot].lost; }
  /// The slot's window on the wall clock; an open slot ends with the snapshot.
  [[nodiscard]] const WallWindow& window(std::size_t slot) const { return slots_[slot].window; }
  /// `quality` has only the losses: the visitor of the stacks counts the rest.
  [[nodiscard]] const AnswerFacts& facts() const { return facts_; }
  [[nodiscard]] ThreadFilter& filter() { return filter_; }
  /// For Want::kSamples: the window has slots, but none with a log.
  [[nodiscard]] bool has_no_samples() const { return none_exact_; }
  [[nodiscard]] static Error no_samples_error();

 private:
  /// The stack that is shown instead of the thread's stacks, if these are hidden.
  [[nodiscard]] std::optional<StackId> instead_of(std::uint32_t thread) const {
    if (!snapshot_.only_user || !snapshot_.hides(snapshot_.threads[thread])) return std::nullopt;
    return snapshot_.tree.hidden;
  }

  [[nodiscard]] const CallTree::View* without_idle() const { return snapshot_.hides_idle ? &snapshot_.tree : nullptr; }

  struct Touched {
    SlotBounds bounds;
    const SealedSlot* sealed = nullptr;    ///< either this is set
    const OpenSlot::View* open = nullptr;  ///< or that; or none: long waits, in this window
    bool exact = false;                    ///< it has a log
    bool is_waiting = false;               ///< of waits
    bool complete = false;                 ///< all of its samples are in the window
    std::size_t logged = 0;                ///< samples, or waits
    MonotonicTime first{}, last{};         ///< of its log
    MonotonicTime from{}, to{};            ///< the window on the slot's clock
    WallWindow window{};                   ///< on the wall clock
    std::uint64_t lost = 0;
    std::uint64_t weight = 1;
    bool extracted = false;
    std::vector<HistogramEntry> entries{};  ///< of selected threads, grouped by thread; once extracted

    [[nodiscard]] bool is_whole() const { return sealed != nullptr && complete; }
    template <typename Log>
    void read_log(const Log& log) {
      exact = true;
      logged = log.count();
      first = log.first();
      last = log.last();
    }
  };
  struct Pair {
    std::uint32_t thread = 0;
    std::uint32_t stack_key = 0;
    bool wanted = false;
  };
  struct WallWait {
    std::uint32_t thread = 0;
    std::uint32_t stack_key = 0;
    WallWindow window;
  };

  [[nodiscard]] bool is_in_part(const Touched& slot, const LoggedSample& sample) const {
    return !part_ || part_->covers({sample.time.ns + slot.bounds.wall_offset_ns});
  }
  /// visit(const LoggedWait&) for those of an exact slot of waiting time.
  template <typename F>
  void for_each_logged_wait(const Touched& slot, F&& visit) const {
    if (slot.open != nullptr) {
      slot.open->wait_log->for_each(visit);
    } else if (slot.sealed != nullptr) {
      slot.sealed->wait_log->for_each(visit);
    } else {
      const std::int64_t offset_ns = slot.bounds.wall_offset_ns;
      for (std::uint32_t i = 0; i < long_waits_.size(); ++i) {
        const WallWindow& window = long_waits_[i].window;
        const std::int64_t units = (window.to.ns - window.from.ns + kWaitUnitNs / 2) / kWaitUnitNs;
        visit(
            LoggedWait{{window.from.ns - offset_ns}, {window.to.ns - offset_ns}, static_cast<std::uint32_t>(units), i});
      }
    }
  }
  /// visit(from, to, units) for the wait in the window, and in each selected part of a second.
  template <typename F>
  void for_each_part_of(const Touched& slot, const LoggedWait& wait, F&& visit) const {
    const auto visit_within = [&](std::int64_t from_ns, std::int64_t to_ns) {
      const MonotonicTime from{std::max({from_ns, wait.from.ns, slot.from.ns})};
      const MonotonicTime to{std::min({to_ns, wait.to.ns, slot.to.ns})};
      if (from >= to) return;
      const std::uint64_t units = wait.units_before(to) - wait.units_before(from);
      if (units != 0) visit(from, to, units);
    };
    if (!part_) return visit_within(wait.from.ns, wait.to.ns);
    const std::int64_t offset_ns = slot.bounds.wall_offset_ns;
    const std::int64_t end_ns = std::min(wait.to.ns, slot.to.ns);
    std::int64_t second_ns = std::max(wait.from.ns, slot.from.ns) + offset_ns;
    second_ns -= second_ns % kNsPerSecond + offset_ns;
    for (; second_ns < end_ns; second_ns += kNsPerSecond) {
      visit_within(second_ns + part_->from_ns, second_ns + part_->to_ns);
    }
  }
  /// The sum of the longest run of slots from `index` on that has a sum or may get one; `slots` is its length. Null:
  /// none, and `slots` is unchanged.
  std::shared_ptr<const Histogram> sum_at(std::size_t index, std::size_t& slots);
  /// The run of `count` slots from `index` on, if it may have a sum.
  [[nodiscard]] std::optional<SlotRun> run_at(std::size_t index, std::size_t count) const;
  /// Null: the budget is exhausted.
  std::shared_ptr<const Histogram> make_sum(std::size_t index, std::size_t count);
  /// By side, see slot_sums.h, without the slot's weight. Null: not known for this selection, or the budget is
  /// exhausted.
  std::shared_ptr<const Histogram> sides_of(std::size_t slot, Side asked, StackStates& states);
  /// Counts the stored samples of a sealed slot in `quality`.
  void count_stored(std::size_t slot, Quality& quality) const;
  /// Fills `entries` of a slot that has no suitable histogram.
  bool extract(Touched& slot);
  bool extract_open(Touched& slot);
  bool extract_long_waits(Touched& slot);
  /// Adds a slot for waits that outlast slots.
  void add_long_waits();
  /// Their wait in the window, on the wall clock.
  void collect_long_waits();
  bool extract_sealed(Touched& slot);
  /// `counts`, by number in the log: of all samples before, of those that are meant after.
  void count_in_window(const Touched& slot, std::vector<std::uint32_t>& counts) const;
  template <typename Log>
  void count_samples(const Touched& slot, const Log& log, std::vector<std::uint32_t>& counts) const;
  bool read_pairs(const Touched& slot);
  /// Not left out by hides_idle.
  [[nodiscard]] bool shows(StackRef ref) const;
  /// Sets the slots' weights so that all count in units of one period. `windows` are the slots'.
  void unify_periods(std::span<const WallWindow> windows);
  void warn(std::optional<WallWindow> retained);
  void warn_of_time(const WallWindow& retained);
  void warn_of_given_up();
  void count_pending();
  void find_gaps();

  const SnapshotData& snapshot_;
  QueryBudget& budget_;
  ThreadFilter filter_;
  std::optional<SecondPart> part_;
  std::vector<Touched> slots_;                          ///< oldest first
  std::vector<std::shared_ptr<const Histogram>> sums_;  ///< that views of visitors point into
  std::vector<std::uint32_t> sum_of_;                   ///< by stack key: scratch of make_sum(), otherwise all 0
  std::vector<Pair> pairs_;                             ///< of one slot, by number in its log
  std::vector<WallWait> long_waits_;
  AnswerFacts facts_;
  bool none_exact_ = false;
  bool has_warned_of_threads_ = false;
};

/// "2026-01-31T12:34:56Z"
std::string to_text(WallTime time);

}  // namespace flamed::store
