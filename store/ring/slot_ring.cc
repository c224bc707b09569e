// SPDX-License-Identifier: Apache-2.0
#include "store/ring/slot_ring.h"

#include <algorithm>
#include <utility>

namespace flamed::store {
namespace {

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

SlotRing::SlotRing(const Limits& limits, const Clock& clock, std::int64_t period_ns)
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
  budget_.take(sizeof(SlotRing));
}

OpenSlot* SlotRing::slot_for(MonotonicTime time) {
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

std::optional<SlotRing::Place> SlotRing::add(OpenSlot* slot, const StackSample& sample, Amount amount) {
  if (division_.is_due()) division_.judge(false);
  std::size_t share = 16;
  for (;;) {
    division_.hold_back_from(sample.owner);
    std::optional<std::uint32_t> thread = threads_.intern(
        sample.process, sample.tid, sample.comm, {sample.owner, sample.is_hidden}, amount.is_waiting, slot->sequence);
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

std::optional<SlotRing::Place> SlotRing::count_cut(OpenSlot& slot, std::uint32_t thread, CallTree::Interned interned,
                                                   const StackSample& sample, Amount amount) {
  if (const StackRef cut{interned.stack, true}; !interned.whole && count(slot, thread, cut, sample, amount)) {
    return Place{thread, cut};
  }
  const StackRef none{kEmptyStack, true};
  if (!count(slot, thread, none, sample, amount, OpenSlot::Room::kReserve)) return std::nullopt;
  return Place{thread, none};
}

std::optional<SlotRing::Place> SlotRing::store_without_room(OpenSlot& slot, std::optional<std::uint32_t> thread,
                                                            CallTree::Interned interned, const StackSample& sample,
                                                            Amount amount) {
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

bool SlotRing::count(OpenSlot& slot, std::uint32_t thread, StackRef ref, const StackSample& sample, Amount amount,
                     OpenSlot::Room room) {
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
  if (amount.is_waiting) {
    keep_wait(slot, count.entry, amount);
  } else {
    keep(slot, count.entry, sample);
  }
  return true;
}

void SlotRing::keep(OpenSlot& slot, std::uint32_t entry, const StackSample& sample) {
  while (slot.log.needs_room() && sealed_.drop_oldest_log()) continue;
  slot.log.append({sample.time, entry, sample.cpu});
}

void SlotRing::keep_wait(OpenSlot& slot, std::uint32_t entry, const Amount& amount) {
  while (slot.wait_log.needs_room() && sealed_.drop_oldest_log()) continue;
  slot.wait_log.append({amount.from, amount.to, amount.units, entry});
}

void SlotRing::mark_used(OpenSlot& slot, std::uint32_t thread, StackRef ref) {
  tree_.mark_used(ref.stack, slot.sequence, division_.tag_of(threads_[thread].owner));
  threads_.mark_used(thread, slot.sequence);
}

void SlotRing::count_truncated(OpenSlot& slot, Truncation reason) {
  ++slot.quality.truncated[static_cast<std::size_t>(reason)];
  ++total_.truncated[static_cast<std::size_t>(reason)];
}

void SlotRing::lose(OpenSlot& slot, Loss reason, std::uint64_t count) {
  slot.quality.lost[static_cast<std::size_t>(reason)] += count;
  total_.lost[static_cast<std::size_t>(reason)] += count;
}

void SlotRing::update_process(const ProcessInfo& info) {
  if (processes_.update(info, next_sequence_)) return;
  // Rather forget idle processes than slots: what is lost is a name, and the next sample brings one back.
  processes_.sweep(next_sequence_, true);
  static_cast<void>(processes_.update(info, next_sequence_));
}

void SlotRing::set_period_ns(std::int64_t period_ns, MonotonicTime from) {
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

bool SlotRing::advance(MonotonicTime now, std::size_t asked_back) {
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
  if (asked_back != 0) let_go_of(asked_back);
  // Leave the open slots some room to grow without having to ask for it in the middle of a sample.
  std::size_t share = 64;
  while (division_.is_short() && make_room(share, std::nullopt)) continue;
  if (is_somebody_over()) division_.judge(false);
  if (dropped_since_sweep_ >= std::clamp<std::size_t>(sealed_.size() / 8, 1, kSlotsPerSweep)) {
    sweep(false);
  } else if (sealed_any) {
    processes_.sweep(next_sequence_, false);
  }
  return sealed_any;
}

void SlotRing::finish(MonotonicTime now) {
  if (open_.empty()) return;
  close(*open_.back(), now);
  while (!open_.empty()) seal_oldest();
}

void SlotRing::open_slot(MonotonicTime time, std::optional<MonotonicTime> previous_end) {
  SlotBounds bounds = next_bounds(time, previous_end, clock_.wall_offset_ns(), period_ns_);
  open_.push_back(std::make_unique<OpenSlot>(budget_, log_budget_, bounds, next_sequence_++));
  standing_.for_each(
      [this](const StandingWait& wait) { mark_used(*open_.back(), wait.thread, StackRef::from_key(wait.stack_key)); });
  while (open_.size() > kMostOpenSlots) seal_oldest();
}

void SlotRing::close(OpenSlot& slot, MonotonicTime now) const {
  MonotonicTime end = std::max({now, MonotonicTime{latest_.ns + 1}, MonotonicTime{slot.bounds.start.ns + 1}});
  slot.bounds.end = std::min(slot.bounds.end, end);
}

void SlotRing::seal_oldest() {
  SealedSlot sealed = open_.front()->seal();
  open_.pop_front();
  division_.note_sealed(*sealed.slot);
  newest_sealed_ = sealed.slot->sequence;
  has_sealed_.notify_all();
  sealed_.push(std::move(sealed));
}

bool SlotRing::seal_early() {
  OpenSlot& newest = *open_.back();
  if (latest_.ns - newest.bounds.start.ns < kShortestPieceNs) return false;
  close(newest, latest_);
  open_slot(newest.bounds.end, newest.bounds.end);
  while (open_.size() > 1) seal_oldest();
  return true;
}

void SlotRing::drop_oldest() {
  division_.note_dropped(sealed_.oldest());
  sealed_.drop_oldest();
  ++dropped_since_sweep_;
}

bool SlotRing::make_room(std::size_t& share, std::optional<std::uint32_t> wanted_by) {
  const std::size_t before = budget_.used_bytes();
  if (!let_go(share, wanted_by)) return false;
  if (budget_.used_bytes() + budget_.limit_bytes() / 128 > before) share = std::max<std::size_t>(share / 2, 1);
  return true;
}

bool SlotRing::let_go(std::size_t share, std::optional<std::uint32_t> wanted_by) {
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

bool SlotRing::take_from_largest(std::size_t share) {
  if (!division_.take_from_largest(share, sealed_, clock_.monotonic())) return false;
  ++times_thinned_;
  sweep(false);
  division_.judge(false);
  return true;
}

void SlotRing::let_go_of(std::size_t bytes) {
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

void SlotRing::sweep(bool even_running_processes) {
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

std::optional<std::uint32_t> SlotRing::await_sealed(std::unique_lock<std::mutex>& lock, std::uint32_t sequence,
                                                    const std::stop_token& stop,
                                                    std::chrono::nanoseconds longest) const {
  if (!has_sealed_.wait_for(lock, stop, longest, [&] { return newest_sealed_ > sequence; })) return std::nullopt;
  return newest_sealed_;
}

std::optional<std::vector<ModuleId>> SlotRing::take_live_modules() {
  if (!std::exchange(frames_reclaimed_, false)) return std::nullopt;
  return tree_.modules();
}

void SlotRing::show(SnapshotData& data) {
  data.tree = tree_.view();
  data.threads = threads_.view();
  data.processes = processes_.view();
  data.sealed = sealed_.view();
  data.standing_waits = standing_.view();
  data.open.reserve(open_.size());
  for (const auto& slot : open_) data.open.push_back(slot->view());
  data.sums = sums_;
  data.side_sums = side_sums_;
  data.since = began_;
  data.until = std::max(clock_.monotonic(), MonotonicTime{latest_.ns + 1});
  data.period_ns = period_ns_;
  data.budget_bytes = budget_of(limits_);
  data.budget_dropped_until = budget_dropped_until_;
  data.memory_dropped_until = memory_dropped_until_;
  data.given_up = division_.shares().given_up();
}

void SlotRing::describe(StoreStats& stats) const {
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
  stats.stacks_given_up = division_.losses().stacks_given_up;
  stats.samples_dropped_for_share = division_.losses().dropped;
  stats.stacks_cut_for_share = division_.losses().stacks_cut;
  stats.above_share = division_.shares().losers_since({clock_.monotonic().ns - kLatelyNs});
  count_logs(stats);
  if (!sealed_.empty()) {
    stats.oldest = start_of(sealed_.oldest().bounds);
  } else if (!open_.empty()) {
    stats.oldest = start_of(open_.front()->bounds);
  }
}

void SlotRing::count_logs(StoreStats& stats) const {
  stats.exact_bytes = log_budget_.used_bytes();
  stats.exact_budget_bytes = log_budget_.limit_bytes();
  stats.exact_samples = sealed_.logged_samples();
  stats.exact_waits = sealed_.logged_waits();
  for (const auto& slot : open_) {
    stats.exact_samples += slot->log.count();
    if (!slot->log.whole()) return;
  }
  if (!open_.empty()) stats.exact_from = start_of(open_.front()->bounds);
  for (std::size_t place = sealed_.size(); place > 0 && sealed_[place - 1].log; --place) {
    stats.exact_from = start_of(sealed_[place - 1].slot->bounds);
  }
}

}  // namespace flamed::store
