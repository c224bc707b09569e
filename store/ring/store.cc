// SPDX-License-Identifier: Apache-2.0
#include "store/ring/store.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "store/containers/budget.h"
#include "store/ring/call_tree.h"
#include "store/ring/process_table.h"
#include "store/ring/slot.h"
#include "store/ring/slot_sums.h"
#include "store/ring/snapshot_data.h"
#include "store/ring/thread_table.h"
#include "store/ring/user_shares.h"

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

std::size_t budget_of(const Limits& limits) { return std::max(limits.budget_bytes, kLeastBudgetBytes); }
/// What is taken without asking (headers of slots, strings) fits in the difference.
std::size_t growth_limit_of(const Limits& limits) { return budget_of(limits) - budget_of(limits) / 32; }
/// Readers' sums of minutes are worth more than the few more minutes that would find room in their place.
std::size_t sums_limit_of(const Limits& limits) { return budget_of(limits) / 32; }
/// Of that, sums by side: one is a hundredth of its minute.
std::size_t side_sums_limit_of(const Limits& limits) { return sums_limit_of(limits) / 4; }
// Users who have more than a share leave this part to the others, of all and of what the call-tree may take, so that
// these find room within a minute.
constexpr std::size_t kReserveShare = 16;
constexpr std::size_t kTreeReserveShare = 32;
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
constexpr std::int64_t kLatelyNs = 10 * kNsPerMinute;
constexpr std::int64_t kShortestPieceNs = 5 * kNsPerSecond;
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
        threads_(budget_, processes_) {
    budget_.take(sizeof(State));
    watch_from(0, 0);
  }

  void begin() {
    std::lock_guard lock(mutex_);
    began_ = clock_.monotonic();
  }

  void add(const StackSample& sample) {
    std::lock_guard lock(mutex_);
    tell_of_news();
    latest_ = std::max(latest_, sample.time);
    OpenSlot* slot = slot_for(sample.time);
    if (slot == nullptr) {
      lose(*open_.front(), Loss::kTooOld, 1);
      return;
    }
    began_ = std::min(began_, sample.time);
    if (tree_budget_.used_bytes() > tree_watched_ || budget_.used_bytes() > watched_ || is_tree_tighter()) judge(false);
    std::size_t share = 16;
    for (;;) {
      hold_back_from(sample.owner);
      std::optional<std::uint32_t> thread =
          threads_.intern(sample.process, sample.tid, sample.comm, {sample.owner, sample.is_hidden}, slot->sequence);
      CallTree::Interned interned{kEmptyStack, false};
      if (thread) interned = tree_.intern(sample.truncation, sample.frames);
      if (thread && interned.whole && count(*slot, *thread, {interned.stack, false}, sample)) {
        if (sample.is_hidden) tree_.mark_hidden(slot->sequence);
        if (sample.truncation) {
          count_truncated(*slot, *sample.truncation);
        } else {
          ++slot->quality.whole;
          ++total_.whole;
        }
        hold_back(false);
        return;
      }
      hold_back(false);
      // Ids found so far may be reclaimed by this: begin again.
      const bool is_room_made = make_room(share, sample.owner);
      slot = slot_for(sample.time);
      if (slot == nullptr) slot = open_.front().get();
      if (is_room_made) continue;
      store_without_room(*slot, thread, interned, sample);
      return;
    }
  }

  void add_lost(Loss reason, std::uint64_t count, MonotonicTime when) {
    if (count == 0) return;
    std::lock_guard lock(mutex_);
    tell_of_news();
    OpenSlot* slot = slot_for(when);
    lose(slot != nullptr ? *slot : *open_.front(), reason, count);
  }

  void add_gap(const Gap& gap) {
    std::lock_guard lock(mutex_);
    tell_of_news();
    gaps_.add(gap);
  }

  void give_back(std::size_t bytes) { asked_back_ += bytes; }

  bool end_process(ProcessId id, WallTime ended) {
    std::lock_guard lock(mutex_);
    if (!processes_.end(id, ended, next_sequence_)) return false;
    tell_of_news();
    return true;
  }

  void update_process(const ProcessInfo& info) {
    std::lock_guard lock(mutex_);
    tell_of_news();
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
    while (!sealed_.empty() && sealed_.front().slot->bounds.end.ns + limits_.retention_ns <= now.ns) {
      drop_oldest();
      ++dropped_for_age_;
    }
    if (sealed_any) gaps_.forget_before({now.ns + clock_.wall_offset_ns() - limits_.retention_ns});
    if (const std::size_t asked_back = asked_back_.exchange(0); asked_back != 0) let_go_of(asked_back);
    // Leave the open slots some room to grow without having to ask for it in the middle of a sample.
    std::size_t share = 64;
    while (budget_.used_bytes() > soft_limit_of(budget_) && make_room(share, std::nullopt)) continue;
    if (!shares_.over().empty()) judge(false);
    if (dropped_since_sweep_ >= std::clamp<std::size_t>(sealed_.size() / 8, 1, kSlotsPerSweep)) {
      sweep(false);
    } else if (sealed_any) {
      processes_.sweep(next_sequence_, false);
    }
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
    if (sealed_view_ == nullptr) {
      sealed_view_ = std::make_shared<const std::vector<SealedSlot>>(sealed_.begin(), sealed_.end());
    }
    data->sealed = sealed_view_;
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
    data->given_up = shares_.given_up();
    data->gaps = gaps_.view();
    return Snapshot(std::move(data));
  }

  StoreStats stats() const {
    std::lock_guard lock(mutex_);
    StoreStats stats;
    stats.quality = total_;
    stats.used_bytes = budget_.used_bytes() + log_budget_.used_bytes() + sums_->used_bytes() + side_sums_->used_bytes();
    stats.budget_bytes = budget_of(limits_);
    stats.slots = sealed_.size() + open_.size();
    stats.sealed_bytes = sealed_bytes_;
    stats.histogram_entries = sealed_entries_;
    for (const auto& slot : open_) stats.histogram_entries += slot->entry_count();
    stats.nodes = tree_.node_count();
    stats.frames = tree_.frame_count();
    stats.threads = threads_.size();
    stats.processes = processes_.size();
    stats.slots_dropped_for_age = dropped_for_age_;
    stats.slots_dropped_for_budget = dropped_for_budget_;
    stats.slots_dropped_for_memory = dropped_for_memory_;
    stats.given_back_bytes = given_back_;
    stats.gaps = gaps_.totals();
    stats.stacks_given_up = stacks_given_up_;
    stats.samples_dropped_for_share = samples_dropped_for_share_;
    stats.stacks_cut_for_share = stacks_cut_for_share_;
    stats.above_share = shares_.losers_since({clock_.monotonic().ns - kLatelyNs});
    add_log_stats(stats);
    if (!sealed_.empty()) {
      stats.oldest = start_of(sealed_.front().slot->bounds);
    } else if (!open_.empty()) {
      stats.oldest = start_of(open_.front()->bounds);
    }
    return stats;
  }

 private:
  [[nodiscard]] WallTime start_of(const SlotBounds& bounds) const {
    return {std::max(bounds.start, began_).ns + bounds.wall_offset_ns};
  }

  void tell_of_news() { revision_.store(revision_.load(std::memory_order_relaxed) + 1); }

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
    bool retained = !sealed_.empty() && time >= sealed_.front().slot->bounds.start;
    return retained ? open_.front().get() : nullptr;
  }

  void open_slot(MonotonicTime time, std::optional<MonotonicTime> previous_end) {
    SlotBounds bounds = next_bounds(time, previous_end, clock_.wall_offset_ns(), period_ns_);
    open_.push_back(std::make_unique<OpenSlot>(budget_, log_budget_, bounds, next_sequence_++));
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
    account(*sealed.slot);
    sealed.slot->histogram.for_each_thread_counted(
        [&](std::uint32_t thread, std::span<const std::uint8_t>, std::size_t stacks) {
          std::size_t& open = shares_[shares_.find(threads_[thread].owner)].open_entries;
          open -= std::min(open, stacks);
        });
    if (sealed.log) {
      log_budget_.take(sealed.log->bytes());
      sealed_log_samples_ += sealed.log->count();
    }
    sealed_.push_back(std::move(sealed));
    sealed_view_ = nullptr;
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
    if (without_log_ > 0) {
      --without_log_;
    } else {
      drop_log(sealed_.front());
    }
    uncount(*sealed_.front().slot);
    sealed_.pop_front();
    sealed_view_ = nullptr;
    ++dropped_since_sweep_;
  }

  void account(const Slot& slot) {
    budget_.take(slot.bytes());
    sealed_bytes_ += slot.bytes();
    sealed_entries_ += slot.histogram.entry_count();
    for_each_user_of(slot, [](std::size_t& bytes, std::size_t more) { bytes += more; });
  }

  void uncount(const Slot& slot) {
    budget_.give_back(slot.bytes());
    sealed_bytes_ -= slot.bytes();
    sealed_entries_ -= slot.histogram.entry_count();
    // A user who had no tag when the slot was sealed may have one by now.
    for_each_user_of(slot, [](std::size_t& bytes, std::size_t less) { bytes -= std::min(bytes, less); });
  }

  /// change(what is accounted to a user, bytes) for the threads of a sealed slot.
  template <typename F>
  void for_each_user_of(const Slot& slot, F&& change) {
    slot.histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
      UserShares::User& user = shares_[shares_.find(threads_[thread].owner)];
      change(slot.sequence > user.thinned_through ? user.stack_bytes : user.thin_bytes, bytes.size() + kGroupBytes);
    });
  }

  void drop_log(SealedSlot& sealed) {
    if (!sealed.log) return;
    log_budget_.give_back(sealed.log->bytes());
    sealed_log_samples_ -= sealed.log->count();
    sealed.log = nullptr;
    sealed_view_ = nullptr;
  }

  /// Keeps the sample of a pair that was counted. The oldest minute's samples make room for the newest's; a log that
  /// alone is larger than all of the room is given up.
  void keep(OpenSlot& slot, std::uint32_t entry, const StackSample& sample) {
    while (slot.log.needs_room() && without_log_ < sealed_.size()) drop_log(sealed_[without_log_++]);
    slot.log.append({sample.time, entry, sample.cpu});
  }

  void add_log_stats(StoreStats& stats) const {
    stats.exact_bytes = log_budget_.used_bytes();
    stats.exact_budget_bytes = log_budget_.limit_bytes();
    stats.exact_samples = sealed_log_samples_;
    for (const auto& slot : open_) {
      stats.exact_samples += slot->log.count();
      if (!slot->log.whole()) return;
    }
    if (!open_.empty()) stats.exact_from = start_of(open_.front()->bounds);
    for (auto sealed = sealed_.rbegin(); sealed != sealed_.rend() && sealed->log; ++sealed) {
      stats.exact_from = start_of(sealed->slot->bounds);
    }
  }

  void hold_back(bool is_held_back) {
    budget_.hold_back(is_held_back ? reserve_of(budget_) : 0);
    tree_budget_.hold_back(is_held_back ? reserve_of(tree_budget_) : 0);
  }
  /// From users who have more than a share, so that others find room.
  void hold_back_from(std::uint32_t user) {
    if (shares_.is_over(user)) hold_back(true);
  }

  /// Who has how much is looked at when there is more than `tree` and `all`, or little room is left.
  void watch_from(std::size_t tree, std::size_t all) {
    tree_watched_ = std::max(tree, soft_limit_of(tree_budget_));
    watched_ = std::max(all, soft_limit_of(budget_));
  }
  [[nodiscard]] std::size_t reserve_of(const Budget& budget) const {
    return budget.limit_bytes() / (&budget == &tree_budget_ ? kTreeReserveShare : kReserveShare);
  }
  [[nodiscard]] std::size_t soft_limit_of(const Budget& budget) const {
    return budget.limit_bytes() - reserve_of(budget);
  }

  [[nodiscard]] bool is_tree_tighter() const { return tree_.is_tight() && tree_.node_count() > nodes_watched_; }

  /// Finds out who has more than a share, as far as there is little room; `is_full`: something found none.
  void judge(bool is_full) {
    const std::size_t tree_bytes = tree_budget_.used_bytes();
    const std::size_t all_bytes = budget_.used_bytes();
    watch_from(tree_bytes + tree_budget_.limit_bytes() / 64, all_bytes + budget_.limit_bytes() / 64);
    nodes_watched_ = tree_.node_count() + tree_.node_count() / 64;
    const auto fullness = [](const Budget& budget) {
      return static_cast<double>(budget.used_bytes()) / static_cast<double>(budget.limit_bytes());
    };
    const bool is_tree_fuller = fullness(tree_budget_) > fullness(budget_);
    const bool is_tree_short =
        tree_bytes > soft_limit_of(tree_budget_) || tree_.is_tight() || (is_full && is_tree_fuller);
    const bool is_all_short = all_bytes > soft_limit_of(budget_) || (is_full && !is_tree_fuller);
    if (!is_tree_short && !is_all_short) {
      shares_.acquit();
      return;
    }
    static_cast<void>(tree_.given_up());  // while there is room for it
    const auto divide = [this](UserShares::Resource& resource, const Budget& budget) {
      std::size_t of_users = 0;
      for (std::size_t tag = kUnused + 1; tag < kSeveral; ++tag) of_users += resource.held[tag];
      const std::size_t used = budget.used_bytes();
      const std::size_t common = used - std::min(used, of_users);
      const std::size_t room = std::min(soft_limit_of(budget), used - used / kTreeReserveShare);
      resource.room = room - std::min(room, common);
    };
    std::array<UserShares::Resource, 2> resources{};
    UserShares::Resource& tree = resources[0];
    const std::size_t node_bytes = tree_bytes / std::max<std::size_t>(tree_.node_count(), 1);
    for (std::size_t tag = 0; tag < kUserTags; ++tag) tree.held[tag] = tree_.nodes_of_users()[tag] * node_bytes;
    divide(tree, tree_budget_);
    if (!is_all_short) {
      shares_.judge(std::span(resources).first(1));
      return;
    }
    UserShares::Resource& all = resources[1];
    all.held = rows_of_users();
    for (std::size_t tag = 0; tag < kUserTags; ++tag) {
      const UserShares::User& user = shares_[static_cast<UserTag>(tag)];
      all.held[tag] += tree.held[tag] + user.stack_bytes + user.thin_bytes + user.open_entries * kOpenEntryBytes;
    }
    divide(all, budget_);
    shares_.judge(std::span(resources).subspan(is_tree_short ? 0 : 1));
  }

  /// Bytes of threads and their processes.
  [[nodiscard]] UserShares::Held rows_of_users() {
    UserShares::Held bytes{};
    threads_.for_each([&](const ThreadRecord& thread) {
      const std::size_t threads = std::max<std::size_t>(processes_[thread.process].threads, 1);
      bytes[shares_.find(thread.owner)] += kThreadBytes + kProcessBytes / threads;
    });
    return bytes;
  }

  /// Users who have more than a share lose 1/`share` of the stacks that are the user's in sealed slots, the oldest
  /// first, and of what is left of older ones what is too much. False: there is nothing of them there.
  bool take_from_largest(std::size_t share) {
    for (const UserTag tag : shares_.over()) {
      const UserShares::User& user = shares_[tag];
      const bool has_stacks = user.stack_bytes != 0;
      if (has_stacks) give_up(tag, user.stack_bytes / share, false);
      const std::size_t thin = user.thin_bytes + rows_of_users()[tag];
      const std::size_t all = thin + user.stack_bytes + tree_.nodes_of_users()[tag] * sizeof(CallNode);
      const bool is_too_much = user.thin_bytes != 0 && thin > std::max(all, few_bytes()) / kThinShare;
      if (is_too_much) give_up(tag, user.thin_bytes / 4, true);
      if (!has_stacks && !is_too_much) continue;
      sweep(false);
      judge(false);
      return true;
    }
    return false;
  }
  /// Users who have less than this are not hurried.
  [[nodiscard]] std::size_t few_bytes() const { return budget_.limit_bytes() / 8; }
  [[nodiscard]] bool has_something_to_give(std::uint32_t user) const {
    const UserShares::User& of = shares_[shares_.find(user)];
    return of.stack_bytes != 0 || of.thin_bytes > few_bytes() / kThinShare;
  }

  /// Takes a user's stacks out of the oldest sealed slots, or `everything` out of those that have none any more: so
  /// many bytes, or a little more.
  void give_up(UserTag tag, std::size_t bytes, bool everything) {
    UserShares::User& user = shares_[tag];
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
    for (SealedSlot& sealed : sealed_) {
      if (held <= target) break;
      const std::shared_ptr<const Slot> old = sealed.slot;
      if (old->sequence <= through) continue;
      if (everything && old->sequence > user.thinned_through) break;
      const std::size_t before = held;
      uncount(*old);
      through = old->sequence;
      if (held != before) {
        if (!everything) {
          // Without room for what says so, it is said as of a stack that found none.
          const std::optional<StackId> mark = tree_.given_up();
          how.instead = mark ? StackRef{*mark} : StackRef{kEmptyStack, true};
        }
        if (sealed.log) {
          log_budget_.give_back(sealed.log->bytes());
          sealed_log_samples_ -= sealed.log->count();
        }
        sealed = thin(sealed, how, samples);
        if (sealed.log) {
          log_budget_.take(sealed.log->bytes());
          sealed_log_samples_ += sealed.log->count();
        }
        sealed_view_ = nullptr;
        shares_.note_given_up(tag, old->bounds.wall_start(), old->bounds.wall_end(), clock_.monotonic());
        if (everything) user.given_up->dropped_until = old->bounds.wall_end();
      }
      account(*sealed.slot);
    }
    if (held > target) held = 0;  // whatever was accounted: there is no more
    (everything ? samples_dropped_for_share_ : stacks_given_up_) += samples;
    tell_of_news();
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
    if (wanted_by && shares_.is_over(*wanted_by) && !has_something_to_give(*wanted_by)) return false;
    if (sealed_.empty() && shares_.over().empty()) return false;
    judge(wanted_by.has_value());
    if (take_from_largest(std::min(share, kMostGivenUpShare))) return true;
    if (!shares_.over().empty()) {
      // All that they have is in the open slots. A user with no more than a share need not wait for the minute's end.
      if (!wanted_by || shares_.is_over(*wanted_by) || !seal_early()) return false;
      return take_from_largest(1);
    }
    if (sealed_.empty()) return false;
    for (std::size_t left = std::max<std::size_t>(sealed_.size() / share, 1); left > 0; --left) {
      WallTime end = sealed_.front().slot->bounds.wall_end();
      budget_dropped_until_ = budget_dropped_until_ ? std::max(*budget_dropped_until_, end) : end;
      drop_oldest();
      ++dropped_for_budget_;
    }
    sweep(sealed_.empty());
    return true;
  }

  [[nodiscard]] std::size_t held_bytes() const { return budget_.used_bytes() + log_budget_.used_bytes(); }

  void let_go_of(std::size_t bytes) {
    const std::size_t before = held_bytes();
    const std::size_t target = before - std::min(before, bytes);
    while (held_bytes() > target && without_log_ < sealed_.size()) drop_log(sealed_[without_log_++]);
    // What only the minutes named goes with them: a sweep after each eighth shows whether that was enough.
    while (held_bytes() > target && !sealed_.empty()) {
      for (std::size_t left = std::max<std::size_t>(sealed_.size() / 8, 1); left > 0; --left) {
        const WallTime end = sealed_.front().slot->bounds.wall_end();
        memory_dropped_until_ = std::max(memory_dropped_until_.value_or(end), end);
        drop_oldest();
        ++dropped_for_memory_;
      }
      sweep(sealed_.empty());
    }
    given_back_ += before - held_bytes();
  }

  void sweep(bool even_running_processes) {
    std::uint32_t oldest = !sealed_.empty() ? sealed_.front().slot->sequence
                           : !open_.empty() ? open_.front()->sequence
                                            : next_sequence_;
    std::vector<CallTree::OldestOf> oldest_of;
    for (std::size_t tag = kUnused + 1; tag < kSeveral; ++tag) {
      const std::uint32_t through = shares_[static_cast<UserTag>(tag)].thinned_through;
      if (through >= oldest) oldest_of.push_back({static_cast<UserTag>(tag), through + 1});
    }
    if (tree_.sweep(oldest, oldest_of)) frames_reclaimed_ = true;
    threads_.sweep(
        [&](std::uint32_t user) { return std::max(oldest, shares_[shares_.find(user)].dropped_through + 1); });
    const WallTime start = !sealed_.empty() ? sealed_.front().slot->bounds.wall_start()
                           : !open_.empty() ? open_.front()->bounds.wall_start()
                                            : WallTime{0};
    shares_.forget_unused(tree_.nodes_of_users(), oldest, start);
    processes_.sweep(next_sequence_, even_running_processes);
    dropped_since_sweep_ = 0;
  }

  /// Counts a stack that found no room as what there is of it: the callers that the tree knows, or fewer when the slot
  /// has no room either, down to none at all: then it is still known whose time it was.
  bool count_cut(OpenSlot& slot, std::uint32_t thread, CallTree::Interned interned, const StackSample& sample) {
    if (!interned.whole && count(slot, thread, {interned.stack, true}, sample)) return true;
    return count(slot, thread, {kEmptyStack, true}, sample, OpenSlot::Room::kReserve);
  }

  void store_without_room(OpenSlot& slot, std::optional<std::uint32_t> thread, CallTree::Interned interned,
                          const StackSample& sample) {
    hold_back_from(sample.owner);
    const bool is_held_back = budget_.holds_back();
    if (thread && count_cut(slot, *thread, interned, sample)) {
      count_truncated(slot, Truncation::kStoreFull);
    } else {
      lose(slot, Loss::kStoreFull, 1);
    }
    hold_back(false);
    if (!is_held_back) return;
    ++stacks_cut_for_share_;
    shares_.note_given_up(shares_.find(sample.owner), slot.bounds.wall_start(), slot.bounds.wall_end(), sample.time);
  }

  bool count(OpenSlot& slot, std::uint32_t thread, StackRef ref, const StackSample& sample,
             OpenSlot::Room room = OpenSlot::Room::kOrdinary) {
    const OpenSlot::Count count = slot.count(thread, ref, room);
    if (count.counted == OpenSlot::Counted::kNoRoom) return false;
    if (count.counted == OpenSlot::Counted::kFirstTime) {
      const UserTag user = shares_.tag_of(sample.owner);
      ++shares_[user].open_entries;
      tree_.mark_used(ref.stack, slot.sequence, user);
      threads_.mark_used(thread, slot.sequence);
    }
    keep(slot, count.entry, sample);
    return true;
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
  UserShares shares_;
  std::size_t tree_watched_ = 0;   ///< with more than this the tree's shares are to be looked at,
  std::size_t watched_ = 0;        ///< and with this those of all;
  std::size_t nodes_watched_ = 0;  ///< or with more nodes than these, where there is no room for many more
  ProcessTable processes_;
  ThreadTable threads_;
  std::deque<SealedSlot> sealed_;
  /// The same for snapshots, which are taken more often than minutes end. Null: another has come or gone since.
  std::shared_ptr<const std::vector<SealedSlot>> sealed_view_;
  std::deque<std::unique_ptr<OpenSlot>> open_;
  std::uint32_t next_sequence_ = 1;
  MonotonicTime latest_{std::numeric_limits<std::int64_t>::min()};
  std::size_t sealed_entries_ = 0;
  std::size_t sealed_bytes_ = 0;
  std::size_t sealed_log_samples_ = 0;
  std::size_t without_log_ = 0;  ///< of the oldest in sealed_: their samples are no longer kept one by one
  std::size_t dropped_since_sweep_ = 0;
  std::uint64_t dropped_for_age_ = 0;
  std::uint64_t dropped_for_budget_ = 0;
  std::uint64_t dropped_for_memory_ = 0;
  std::uint64_t given_back_ = 0;
  std::uint64_t stacks_given_up_ = 0;
  std::uint64_t samples_dropped_for_share_ = 0;
  std::uint64_t stacks_cut_for_share_ = 0;
  std::optional<WallTime> budget_dropped_until_;
  std::optional<WallTime> memory_dropped_until_;
  GapLog gaps_;
  std::atomic<std::size_t> asked_back_ = 0;
  Quality total_;
  bool frames_reclaimed_ = false;  ///< writer only
};

Store::Store(Limits limits, const Clock& clock, std::int64_t period_ns)
    : state_(std::make_unique<State>(limits, clock, period_ns)) {}
Store::~Store() = default;

void Store::begin() { state_->begin(); }
void Store::add(const StackSample& sample) { state_->add(sample); }
void Store::add_lost(Loss reason, std::uint64_t count, MonotonicTime when) { state_->add_lost(reason, count, when); }
void Store::add_gap(const Gap& gap) { state_->add_gap(gap); }
void Store::give_back(std::size_t bytes) { state_->give_back(bytes); }
void Store::update_process(const ProcessInfo& info) { state_->update_process(info); }
bool Store::end_process(ProcessId id, WallTime ended) { return state_->end_process(id, ended); }
void Store::set_period_ns(std::int64_t period_ns, MonotonicTime from) { state_->set_period_ns(period_ns, from); }
void Store::advance(MonotonicTime now) { state_->advance(now); }
std::optional<std::vector<ModuleId>> Store::take_live_modules() { return state_->take_live_modules(); }
Snapshot Store::snapshot() const { return state_->snapshot(); }
std::uint64_t Store::revision() const { return state_->revision(); }
StoreStats Store::stats() const { return state_->stats(); }

}  // namespace flamed::store
