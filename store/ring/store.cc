// SPDX-License-Identifier: Apache-2.0
#include "store/ring/store.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "store/containers/budget.h"
#include "store/model/measure.h"
#include "store/model/wait_reason.h"
#include "store/ring/call_tree.h"
#include "store/ring/fair_division.h"
#include "store/ring/process_table.h"
#include "store/ring/sealed_slots.h"
#include "store/ring/slot.h"
#include "store/ring/slot_sums.h"
#include "store/ring/snapshot_data.h"
#include "store/ring/standing_waits.h"
#include "store/ring/thread_table.h"

namespace flamed::store {
namespace {

// What a drain brings is stored before anything is sealed; this is for what is older than it should be.
constexpr std::int64_t kSealDelayNs = 5 * kNsPerSecond;
// NTP slews by at most 0.5 ms a second; more than this is a step or a suspend.
constexpr std::int64_t kClockStepNs = kNsPerSecond;
// Two in normal life; each change of period or wall clock adds one.
constexpr std::size_t kMostOpenSlots = 4;
// Less could not hold one chunk of each table.
constexpr std::size_t kLeastBudgetBytes = 1U << 20;
// An age-driven sweep waits for this many dropped slots: it walks the whole tree to find a few dead nodes.
constexpr std::size_t kSlotsPerSweep = 30;
constexpr std::int64_t kLatelyNs = 10 * kNsPerMinute;
constexpr std::int64_t kShortestPieceNs = 5 * kNsPerSecond;

std::size_t budget_of(const Limits& limits) { return std::max(limits.budget_bytes, kLeastBudgetBytes); }
/// What is taken without asking (headers of slots, strings) fits in the difference.
std::size_t growth_limit_of(const Limits& limits) { return budget_of(limits) - budget_of(limits) / 32; }
/// Readers' sums of minutes are worth more than the few more minutes that would find room in their place.
std::size_t sums_limit_of(const Limits& limits) { return budget_of(limits) / 32; }
/// Of that, sums by side: one is a hundredth of its minute.
std::size_t side_sums_limit_of(const Limits& limits) { return sums_limit_of(limits) / 4; }
std::size_t log_limit_of(const Limits& limits) {
  return std::min(limits.exact_budget_bytes.value_or(budget_of(limits) / 4), budget_of(limits) / 2);
}

}  // namespace

class Store::State {
 public:
  State(Limits limits, const Clock& clock, std::int64_t period_ns)
      : limits_(limits),
        clock_(clock),
        began_(clock.monotonic()),
        period_ns_(period_ns),
        log_budget_(log_limit_of(limits)),
        budget_(growth_limit_of(limits) - log_limit_of(limits) - sums_limit_of(limits)),
        sums_(std::make_shared<SlotSums>(sums_limit_of(limits) - side_sums_limit_of(limits))),
        side_sums_(std::make_shared<SlotSums>(side_sums_limit_of(limits))),
        // The rest is for slots: without it a tree full of stacks could leave no room to say who used them.
        tree_budget_(budget_.limit_bytes() / 4 * 3, &budget_),
        tree_(tree_budget_),
        processes_(budget_),
        threads_(budget_, processes_),
        division_(budget_, tree_budget_, tree_, threads_, processes_),
        standing_(budget_),
        sealed_(budget_, log_budget_) {
    budget_.take(sizeof(State));
  }

  void begin() {
    std::lock_guard lock(mutex_);
    began_ = clock_.monotonic();
  }

  void add(const StackSample& sample) {
    std::lock_guard lock(mutex_);
    count_change();
    latest_ = std::max(latest_, sample.time);
    OpenSlot* slot = slot_for(sample.time);
    if (slot == nullptr) {
      lose(*open_.front(), Loss::kTooOld, 1);
      return;
    }
    began_ = std::min(began_, sample.time);
    store_stack(slot, sample, {});
  }

  void add_wait(const WaitSample& wait) {
    std::lock_guard lock(mutex_);
    count_change();
    const StackSample& sample = wait.sample;
    latest_ = std::max(latest_, sample.time);
    if (slot_for(sample.time) == nullptr) return;
    std::optional<StandingWait> known = standing_.find(sample.tid);
    if (wait.is_known) {
      if (known && !sample.truncation) correct(*known, sample);
      return;
    }
    std::int64_t rest_ns = 0;
    if (known) {
      count_span(*known, wait.last_seen.value_or(std::min(waits_seen_, sample.time)));
      rest_ns = known->rest_ns;
    }
    if (const std::uint32_t units = units_of(wait.queued_ns, rest_ns); units != 0) {
      const Frame queue = wait_frame(WaitReason::kRunQueue);
      StackSample queued = sample;
      queued.frames = {&queue, 1};
      queued.truncation.reset();
      static_cast<void>(store_wait(queued, units));
    }
    const std::optional<Place> place = store_wait(sample, units_of(wait.waited_ns, rest_ns));
    if (!place || !standing_.put(sample.tid, {place->thread, place->ref.key(), sample.time, rest_ns}))
      standing_.remove(sample.tid);
  }

  void correct_wait(const StackSample& sample) {
    std::lock_guard lock(mutex_);
    const std::optional<StandingWait> known = standing_.find(sample.tid);
    if (!known || known->from != sample.time || slot_for(sample.time) == nullptr) return;
    count_change();
    correct(*known, sample);
  }

  void end_wait(std::int32_t tid, MonotonicTime time) {
    std::lock_guard lock(mutex_);
    std::optional<StandingWait> known = standing_.find(tid);
    if (!known) return;
    count_change();
    if (slot_for(time) != nullptr) count_span(*known, std::min(time, waits_seen_));
    standing_.remove(tid);
  }

  void set_waits_seen(MonotonicTime time) {
    std::lock_guard lock(mutex_);
    count_change();
    waits_seen_ = std::max(waits_seen_, time);
  }

  void add_lost(Loss reason, std::uint64_t count, MonotonicTime when) {
    if (count == 0) return;
    std::lock_guard lock(mutex_);
    count_change();
    OpenSlot* slot = slot_for(when);
    lose(slot != nullptr ? *slot : *open_.front(), reason, count);
  }

  void add_gap(const Gap& gap) {
    std::lock_guard lock(mutex_);
    count_change();
    gaps_.add(gap);
  }

  void set_pending(std::vector<PendingSample> pending) {
    std::lock_guard lock(mutex_);
    count_change();
    pending_ = pending.empty() ? nullptr : std::make_shared<const std::vector<PendingSample>>(std::move(pending));
  }

  void give_back(std::size_t bytes) { asked_back_ += bytes; }

  bool end_process(ProcessId id, WallTime ended) {
    std::lock_guard lock(mutex_);
    if (!processes_.end(id, ended, next_sequence_)) return false;
    count_change();
    return true;
  }

  void update_process(const ProcessInfo& info) {
    std::lock_guard lock(mutex_);
    count_change();
    if (processes_.update(info, next_sequence_)) return;
    // Rather forget idle processes than slots: what is lost is a name, and the next sample brings one back.
    processes_.sweep(next_sequence_, true);
    static_cast<void>(processes_.update(info, next_sequence_));
  }

  void set_period_ns(std::int64_t period_ns, MonotonicTime from) {
    std::lock_guard lock(mutex_);
    if (period_ns == period_ns_) return;
    period_ns_ = period_ns;
    if (open_.empty()) return;
    OpenSlot& newest = *open_.back();
    if (newest.quality.taken() == 0 && from.ns - newest.bounds.start.ns < kNsPerSecond) {
      newest.bounds.period_ns = period_ns;
    } else {
      close(newest, from);
    }
  }

  void advance(MonotonicTime now) {
    std::lock_guard lock(mutex_);
    if (!open_.empty() && open_.back()->bounds.covers(now)) {
      std::int64_t step = clock_.wall_offset_ns() - open_.back()->bounds.wall_offset_ns;
      if (step > kClockStepNs || step < -kClockStepNs) close(*open_.back(), now);
    }
    static_cast<void>(slot_for(now));  // an idle minute is a slot too: it says that nothing ran

    bool sealed_any = false;
    while (open_.size() > 1 && open_.front()->bounds.end.ns + kSealDelayNs <= now.ns) {
      seal_oldest();
      sealed_any = true;
    }
    while (!sealed_.empty() && sealed_.oldest().bounds.end.ns + limits_.retention_ns <= now.ns) {
      drop_oldest();
      ++dropped_for_age_;
    }
    if (sealed_any) gaps_.forget_before({now.ns + clock_.wall_offset_ns() - limits_.retention_ns});
    if (const std::size_t asked_back = asked_back_.exchange(0); asked_back != 0) let_go_of(asked_back);
    // Leave the open slots some room to grow without having to ask for it in the middle of a sample.
    std::size_t share = 64;
    while (division_.is_short() && make_room(share, std::nullopt)) continue;
    if (is_somebody_over()) division_.judge(false);
    if (dropped_since_sweep_ >= std::clamp<std::size_t>(sealed_.size() / 8, 1, kSlotsPerSweep)) {
      sweep(false);
    } else if (sealed_any) {
      processes_.sweep(next_sequence_, false);
    }
  }

  void finish(MonotonicTime now) {
    std::lock_guard lock(mutex_);
    if (open_.empty()) return;
    close(*open_.back(), now);
    while (!open_.empty()) seal_oldest();
  }

  std::optional<std::uint32_t> await_sealed(std::uint32_t sequence, const std::stop_token& stop) const {
    std::unique_lock lock(mutex_);
    if (!has_sealed_.wait(lock, stop, [&] { return newest_sealed_ > sequence; })) return std::nullopt;
    return newest_sealed_;
  }

  std::optional<std::vector<ModuleId>> take_live_modules() {
    if (!std::exchange(frames_reclaimed_, false)) return std::nullopt;
    return tree_.modules();
  }

  [[nodiscard]] std::uint64_t revision() const { return revision_; }

  Snapshot snapshot() {
    auto data = std::make_shared<SnapshotData>();
    std::lock_guard lock(mutex_);
    data->tree = tree_.view();
    data->threads = threads_.view();
    data->processes = processes_.view();
    data->sealed = sealed_.view();
    data->standing_waits = standing_.view();
    data->waits_seen = waits_seen_;
    data->open.reserve(open_.size());
    for (const auto& slot : open_) data->open.push_back(slot->view());
    data->sums = sums_;
    data->side_sums = side_sums_;
    data->since = began_;
    data->until = std::max(clock_.monotonic(), MonotonicTime{latest_.ns + 1});
    data->period_ns = period_ns_;
    data->budget_bytes = budget_of(limits_);
    data->budget_dropped_until = budget_dropped_until_;
    data->memory_dropped_until = memory_dropped_until_;
    data->given_up = division_.shares().given_up();
    data->gaps = gaps_.view();
    data->pending = pending_;
    return Snapshot(std::move(data));
  }

  StoreStats stats() const {
    std::lock_guard lock(mutex_);
    StoreStats stats;
    stats.quality = total_;
    stats.used_bytes = budget_.used_bytes() + log_budget_.used_bytes() + sums_->used_bytes() + side_sums_->used_bytes();
    stats.budget_bytes = budget_of(limits_);
    stats.slots = sealed_.size() + open_.size();
    stats.sealed_bytes = sealed_.bytes();
    stats.histogram_entries = sealed_.entry_count();
    for (const auto& slot : open_) stats.histogram_entries += slot->entry_count();
    stats.nodes = tree_.node_count();
    stats.frames = tree_.frame_count();
    stats.threads = threads_.size();
    stats.processes = processes_.size();
    stats.waiting_threads = standing_.size();
    stats.slots_dropped_for_age = dropped_for_age_;
    stats.slots_dropped_for_budget = dropped_for_budget_;
    stats.slots_dropped_for_memory = dropped_for_memory_;
    stats.given_back_bytes = given_back_;
    stats.gaps = gaps_.totals();
    stats.stacks_given_up = division_.losses().stacks_given_up;
    stats.samples_dropped_for_share = division_.losses().dropped;
    stats.stacks_cut_for_share = division_.losses().stacks_cut;
    stats.above_share = division_.shares().losers_since({clock_.monotonic().ns - kLatelyNs});
    add_log_stats(stats);
    if (!sealed_.empty()) {
      stats.oldest = start_of(sealed_.oldest().bounds);
    } else if (!open_.empty()) {
      stats.oldest = start_of(open_.front()->bounds);
    }
    return stats;
  }

 private:
  [[nodiscard]] WallTime start_of(const SlotBounds& bounds) const {
    return {std::max(bounds.start, began_).ns + bounds.wall_offset_ns};
  }

  void count_change() { revision_.store(revision_.load(std::memory_order_relaxed) + 1); }

  /// The open slot that a sample of `time` belongs to, opened if need be. Null when the sample is older than anything
  /// retained; at least one slot is open then. A sample whose own slot is sealed goes to the oldest open one.
  OpenSlot* slot_for(MonotonicTime time) {
    if (open_.empty()) {
      // The first samples of the CPUs come in no order, none of them from before sampling began.
      bool just_begun = began_ <= time && time.ns - began_.ns <= kSealDelayNs;
      open_slot(just_begun ? began_ : time, std::nullopt);
    }
    while (time >= open_.back()->bounds.end) open_slot(time, open_.back()->bounds.end);
    for (auto slot = open_.rbegin(); slot != open_.rend(); ++slot) {
      if (time >= (*slot)->bounds.start) return slot->get();
    }
    bool retained = !sealed_.empty() && time >= sealed_.oldest().bounds.start;
    return retained ? open_.front().get() : nullptr;
  }

  void open_slot(MonotonicTime time, std::optional<MonotonicTime> previous_end) {
    SlotBounds bounds = next_bounds(time, previous_end, clock_.wall_offset_ns(), period_ns_);
    open_.push_back(std::make_unique<OpenSlot>(budget_, log_budget_, bounds, next_sequence_++));
    standing_.for_each([this](const StandingWait& wait) { mark_used(*open_.back(), wait); });
    while (open_.size() > kMostOpenSlots) seal_oldest();
  }

  /// Ends an open slot early. What it already counted stays inside its bounds.
  void close(OpenSlot& slot, MonotonicTime now) {
    MonotonicTime end = std::max({now, MonotonicTime{latest_.ns + 1}, MonotonicTime{slot.bounds.start.ns + 1}});
    slot.bounds.end = std::min(slot.bounds.end, end);
  }

  void seal_oldest() {
    SealedSlot sealed = open_.front()->seal();
    open_.pop_front();
    division_.note_sealed(*sealed.slot);
    newest_sealed_ = sealed.slot->sequence;
    has_sealed_.notify_all();
    sealed_.push(std::move(sealed));
  }

  /// Seals what is open, unless that has only just begun: a minute goes into few pieces.
  bool seal_early() {
    OpenSlot& newest = *open_.back();
    if (latest_.ns - newest.bounds.start.ns < kShortestPieceNs) return false;
    close(newest, latest_);
    open_slot(newest.bounds.end, newest.bounds.end);
    while (open_.size() > 1) seal_oldest();
    return true;
  }

  void drop_oldest() {
    division_.note_dropped(sealed_.oldest());
    sealed_.drop_oldest();
    ++dropped_since_sweep_;
  }

  /// Keeps the sample of a pair that was counted. The oldest minute's samples make room for the newest's; a log that
  /// alone is larger than all of the room is given up.
  void keep(OpenSlot& slot, std::uint32_t entry, const StackSample& sample) {
    while (slot.log.needs_room() && sealed_.drop_oldest_log()) continue;
    slot.log.append({sample.time, entry, sample.cpu});
  }

  void add_log_stats(StoreStats& stats) const {
    stats.exact_bytes = log_budget_.used_bytes();
    stats.exact_budget_bytes = log_budget_.limit_bytes();
    stats.exact_samples = sealed_.logged_samples();
    for (const auto& slot : open_) {
      stats.exact_samples += slot->log.count();
      if (!slot->log.whole()) return;
    }
    if (!open_.empty()) stats.exact_from = start_of(open_.front()->bounds);
    for (std::size_t place = sealed_.size(); place > 0 && sealed_[place - 1].log; --place) {
      stats.exact_from = start_of(sealed_[place - 1].slot->bounds);
    }
  }

  /// Lets go of what there is most of: of those who have more than a share, 1/`share` of what is theirs in sealed
  /// slots; if there is nobody, of the oldest 1/`share` of these slots, at least one. What only that named is
  /// reclaimed. False when there was nothing to go. `share` is for the next time: where little came of it, twice as
  /// much is to go then. Open slots may be sealed by it.
  bool make_room(std::size_t& share, std::optional<std::uint32_t> wanted_by) {
    const std::size_t before = budget_.used_bytes();
    if (!let_go(share, wanted_by)) return false;
    if (budget_.used_bytes() + budget_.limit_bytes() / 128 > before) share = std::max<std::size_t>(share / 2, 1);
    return true;
  }

  bool let_go(std::size_t share, std::optional<std::uint32_t> wanted_by) {
    const auto is_over = [&](std::uint32_t user) { return division_.shares().is_over(user); };
    if (wanted_by && is_over(*wanted_by) && !division_.has_something_to_give(*wanted_by)) return false;
    if (sealed_.empty() && !is_somebody_over()) return false;
    division_.judge(wanted_by.has_value());
    if (take_from_largest(share)) return true;
    if (is_somebody_over()) {
      // All that they have is in the open slots. A user with no more than a share need not wait for the minute's end.
      if (!wanted_by || is_over(*wanted_by) || !seal_early()) return false;
      return take_from_largest(1);
    }
    if (sealed_.empty()) return false;
    for (std::size_t left = std::max<std::size_t>(sealed_.size() / share, 1); left > 0; --left) {
      WallTime end = sealed_.oldest().bounds.wall_end();
      budget_dropped_until_ = budget_dropped_until_ ? std::max(*budget_dropped_until_, end) : end;
      drop_oldest();
      ++dropped_for_budget_;
    }
    sweep(sealed_.empty());
    return true;
  }

  [[nodiscard]] bool is_somebody_over() const { return !division_.shares().over().empty(); }

  bool take_from_largest(std::size_t share) {
    if (!division_.take_from_largest(share, sealed_, clock_.monotonic())) return false;
    count_change();
    sweep(false);
    division_.judge(false);
    return true;
  }

  [[nodiscard]] std::size_t held_bytes() const { return budget_.used_bytes() + log_budget_.used_bytes(); }

  void let_go_of(std::size_t bytes) {
    const std::size_t before = held_bytes();
    const std::size_t target = before - std::min(before, bytes);
    while (held_bytes() > target && sealed_.drop_oldest_log()) continue;
    // What only the minutes named goes with them: a sweep after each eighth shows whether that was enough.
    while (held_bytes() > target && !sealed_.empty()) {
      for (std::size_t left = std::max<std::size_t>(sealed_.size() / 8, 1); left > 0; --left) {
        const WallTime end = sealed_.oldest().bounds.wall_end();
        memory_dropped_until_ = std::max(memory_dropped_until_.value_or(end), end);
        drop_oldest();
        ++dropped_for_memory_;
      }
      sweep(sealed_.empty());
    }
    given_back_ += before - held_bytes();
  }

  void sweep(bool even_running_processes) {
    const std::uint32_t oldest = !sealed_.empty() ? sealed_.oldest().sequence
                                 : !open_.empty() ? open_.front()->sequence
                                                  : next_sequence_;
    const WallTime start = !sealed_.empty() ? sealed_.oldest().bounds.wall_start()
                           : !open_.empty() ? open_.front()->bounds.wall_start()
                                            : WallTime{0};
    if (division_.sweep(oldest, start)) frames_reclaimed_ = true;
    processes_.sweep(next_sequence_, even_running_processes);
    dropped_since_sweep_ = 0;
  }

  /// What is counted of a stack: a sample, or waiting time in units of kWaitUnitNs.
  struct Amount {
    std::uint32_t units = 1;
    bool is_waiting = false;

    [[nodiscard]] OpenSlot& part_of(OpenSlot& slot) const { return is_waiting ? slot.waits() : slot; }
  };
  struct Place {
    std::uint32_t thread = 0;
    StackRef ref{};
  };

  /// Where it was counted; empty: it was lost.
  std::optional<Place> store_stack(OpenSlot* slot, const StackSample& sample, Amount amount) {
    if (division_.is_due()) division_.judge(false);
    std::size_t share = 16;
    for (;;) {
      division_.hold_back_from(sample.owner);
      std::optional<std::uint32_t> thread =
          threads_.intern(sample.process, sample.tid, sample.comm, {sample.owner, sample.is_hidden}, slot->sequence);
      CallTree::Interned interned{kEmptyStack, false};
      if (thread) interned = tree_.intern(sample.truncation, sample.frames);
      const StackRef whole{interned.stack, false};
      if (thread && interned.whole && count(*slot, *thread, whole, sample, amount)) {
        if (sample.is_hidden) tree_.mark_hidden(slot->sequence);
        Quality& quality = amount.part_of(*slot).quality;
        if (sample.truncation) {
          quality.truncated[static_cast<std::size_t>(*sample.truncation)] += amount.units;
          if (!amount.is_waiting) ++total_.truncated[static_cast<std::size_t>(*sample.truncation)];
        } else {
          quality.whole += amount.units;
          if (!amount.is_waiting) ++total_.whole;
        }
        division_.hold_nothing_back();
        return Place{*thread, whole};
      }
      division_.hold_nothing_back();
      // Ids found so far may be reclaimed by this: begin again.
      const bool is_room_made = make_room(share, sample.owner);
      slot = slot_for(sample.time);
      if (slot == nullptr) slot = open_.front().get();
      if (is_room_made) continue;
      return store_without_room(*slot, thread, interned, sample, amount);
    }
  }

  /// Counts a stack that found no room as what there is of it: the callers that the tree knows, or fewer when the slot
  /// has no room either, down to none at all: then it is still known whose time it was.
  std::optional<Place> count_cut(OpenSlot& slot, std::uint32_t thread, CallTree::Interned interned,
                                 const StackSample& sample, Amount amount) {
    if (const StackRef cut{interned.stack, true}; !interned.whole && count(slot, thread, cut, sample, amount)) {
      return Place{thread, cut};
    }
    const StackRef none{kEmptyStack, true};
    if (!count(slot, thread, none, sample, amount, OpenSlot::Room::kReserve)) return std::nullopt;
    return Place{thread, none};
  }

  std::optional<Place> store_without_room(OpenSlot& slot, std::optional<std::uint32_t> thread,
                                          CallTree::Interned interned, const StackSample& sample, Amount amount) {
    const bool is_held_back = division_.hold_back_from(sample.owner);
    std::optional<Place> place;
    if (thread) place = count_cut(slot, *thread, interned, sample, amount);
    if (amount.is_waiting) {
      Quality& quality = slot.waits().quality;
      (place ? quality.truncated[static_cast<std::size_t>(Truncation::kStoreFull)]
             : quality.lost[static_cast<std::size_t>(Loss::kStoreFull)]) += amount.units;
    } else if (place) {
      count_truncated(slot, Truncation::kStoreFull);
    } else {
      lose(slot, Loss::kStoreFull, 1);
    }
    division_.hold_nothing_back();
    if (is_held_back) division_.note_cut(sample.owner, slot.bounds, sample.time);
    return place;
  }

  bool count(OpenSlot& slot, std::uint32_t thread, StackRef ref, const StackSample& sample, Amount amount,
             OpenSlot::Room room = OpenSlot::Room::kOrdinary) {
    if (amount.units == 0) {
      mark_used(slot, thread, ref);
      return true;
    }
    const OpenSlot::Count count = amount.part_of(slot).count(thread, ref, room, amount.units);
    if (count.counted == OpenSlot::Counted::kNoRoom) return false;
    if (count.counted == OpenSlot::Counted::kFirstTime) {
      tree_.mark_used(ref.stack, slot.sequence, division_.note_first_seen(sample.owner));
      threads_.mark_used(thread, slot.sequence);
    }
    if (!amount.is_waiting) keep(slot, count.entry, sample);
    return true;
  }

  // -- Waits ----------------------------------------------------------------------------------------------------------

  /// Whole units of the time; the rest is for the next time.
  static std::uint32_t units_of(std::int64_t ns, std::int64_t& rest_ns) {
    rest_ns += std::max<std::int64_t>(ns, 0);
    const std::int64_t units = rest_ns / kWaitUnitNs;
    rest_ns -= units * kWaitUnitNs;
    return static_cast<std::uint32_t>(units);
  }

  std::optional<Place> store_wait(const StackSample& sample, std::uint32_t units) {
    OpenSlot* const slot = slot_for(sample.time);
    return store_stack(slot != nullptr ? slot : open_.front().get(), sample, {units, true});
  }

  void mark_used(OpenSlot& slot, std::uint32_t thread, StackRef ref) {
    tree_.mark_used(ref.stack, slot.sequence, division_.tag_of(threads_[thread].owner));
    threads_.mark_used(thread, slot.sequence);
  }
  void mark_used(OpenSlot& slot, const StandingWait& wait) {
    mark_used(slot, wait.thread, StackRef::from_key(wait.stack_key));
  }

  /// Counts the wait from its beginning to `until` in the open slots. What is older than these is a long wait.
  void count_span(StandingWait& wait, MonotonicTime until) {
    MonotonicTime from = wait.from;
    const MonotonicTime open_from = open_.front()->bounds.start;
    if (until.ns <= from.ns) return;
    if (open_from.ns - from.ns > kSealDelayNs) {
      OpenSlot& newest = *open_.back();
      const MonotonicTime sealed_until = std::min(until, open_from);
      if (!newest.waits().add_long_wait({wait.thread, wait.stack_key, from, sealed_until})) {
        newest.waits().quality.lost[static_cast<std::size_t>(Loss::kStoreFull)] +=
            units_of(sealed_until.ns - from.ns, wait.rest_ns);
      }
      mark_used(newest, wait);
      from = sealed_until;
    }
    for (const auto& slot : open_) {
      const bool is_last = slot == open_.back();
      const MonotonicTime end = is_last ? until : std::min(until, slot->bounds.end);
      if (end <= from) continue;
      const std::uint32_t units = units_of(end.ns - from.ns, wait.rest_ns);
      from = end;
      if (units != 0) count_units(*slot, wait, units);
    }
  }

  void count_units(OpenSlot& slot, const StandingWait& wait, std::uint32_t units) {
    const StackRef ref = StackRef::from_key(wait.stack_key);
    StackSample sample;
    sample.owner = threads_[wait.thread].owner;
    Quality& quality = slot.waits().quality;
    if (!count(slot, wait.thread, ref, sample, {units, true})) {
      quality.lost[static_cast<std::size_t>(Loss::kStoreFull)] += units;
      return;
    }
    const std::optional<Truncation> truncation =
        ref.cut ? std::optional(Truncation::kStoreFull) : tree_.truncation_of(ref.stack);
    (truncation ? quality.truncated[static_cast<std::size_t>(*truncation)] : quality.whole) += units;
  }

  /// Replaces the stack of the thread's wait.
  void correct(const StandingWait& known, const StackSample& sample) {
    if (const std::optional<Place> place = store_wait(sample, 0)) {
      standing_.put(sample.tid, {place->thread, place->ref.key(), known.from, known.rest_ns});
    }
  }

  void count_truncated(OpenSlot& slot, Truncation reason) {
    ++slot.quality.truncated[static_cast<std::size_t>(reason)];
    ++total_.truncated[static_cast<std::size_t>(reason)];
  }

  void lose(OpenSlot& slot, Loss reason, std::uint64_t count) {
    slot.quality.lost[static_cast<std::size_t>(reason)] += count;
    total_.lost[static_cast<std::size_t>(reason)] += count;
  }

  const Limits limits_;
  const Clock& clock_;
  MonotonicTime began_;  ///< or the time of a sample that is older
  std::atomic<std::uint64_t> revision_{0};
  mutable std::mutex mutex_;  ///< guards everything below; held for one sample, one sweep, or one snapshot's pointers
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
  MonotonicTime waits_seen_{std::numeric_limits<std::int64_t>::min()};
  SealedSlots sealed_;
  std::deque<std::unique_ptr<OpenSlot>> open_;
  std::uint32_t next_sequence_ = 1;
  std::uint32_t newest_sealed_ = 0;
  mutable std::condition_variable_any has_sealed_;
  MonotonicTime latest_{std::numeric_limits<std::int64_t>::min()};
  std::size_t dropped_since_sweep_ = 0;
  std::uint64_t dropped_for_age_ = 0;
  std::uint64_t dropped_for_budget_ = 0;
  std::uint64_t dropped_for_memory_ = 0;
  std::uint64_t given_back_ = 0;
  std::optional<WallTime> budget_dropped_until_;
  std::optional<WallTime> memory_dropped_until_;
  GapLog gaps_;
  std::shared_ptr<const std::vector<PendingSample>> pending_;  ///< null: none
  std::atomic<std::size_t> asked_back_ = 0;
  Quality total_;
  bool frames_reclaimed_ = false;  ///< writer only
};

Store::Store(Limits limits, const Clock& clock, std::int64_t period_ns)
    : state_(std::make_unique<State>(limits, clock, period_ns)) {}
Store::~Store() = default;

void Store::begin() { state_->begin(); }
void Store::add(const StackSample& sample) { state_->add(sample); }
void Store::add_wait(const WaitSample& wait) { state_->add_wait(wait); }
void Store::correct_wait(const StackSample& sample) { state_->correct_wait(sample); }
void Store::end_wait(std::int32_t tid, MonotonicTime time) { state_->end_wait(tid, time); }
void Store::set_waits_seen(MonotonicTime time) { state_->set_waits_seen(time); }
void Store::add_lost(Loss reason, std::uint64_t count, MonotonicTime when) { state_->add_lost(reason, count, when); }
void Store::add_gap(const Gap& gap) { state_->add_gap(gap); }
void Store::set_pending(std::vector<PendingSample> pending) { state_->set_pending(std::move(pending)); }
void Store::give_back(std::size_t bytes) { state_->give_back(bytes); }
void Store::update_process(const ProcessInfo& info) { state_->update_process(info); }
bool Store::end_process(ProcessId id, WallTime ended) { return state_->end_process(id, ended); }
void Store::set_period_ns(std::int64_t period_ns, MonotonicTime from) { state_->set_period_ns(period_ns, from); }
void Store::advance(MonotonicTime now) { state_->advance(now); }
void Store::finish(MonotonicTime now) { state_->finish(now); }
std::optional<std::uint32_t> Store::await_sealed(std::uint32_t sequence, const std::stop_token& stop) const {
  return state_->await_sealed(sequence, stop);
}
std::optional<std::vector<ModuleId>> Store::take_live_modules() { return state_->take_live_modules(); }
Snapshot Store::snapshot() const { return state_->snapshot(); }
std::uint64_t Store::revision() const { return state_->revision(); }
StoreStats Store::stats() const { return state_->stats(); }

}  // namespace flamed::store
