// SPDX-License-Identifier: Apache-2.0
#include "store/ring/store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "store/ring/slot_ring.h"
#include "store/ring/snapshot_data.h"
#include "store/ring/wait_counter.h"

namespace flamed::store {

class Store::State {
 public:
  State(const Limits& limits, const Clock& clock, std::int64_t period_ns)
      : limits_(limits), clock_(clock), ring_(limits, clock, period_ns), waits_(ring_) {}

  void begin() {
    std::lock_guard lock(mutex_);
    ring_.begin();
  }

  void add(const StackSample& sample) {
    std::lock_guard lock(mutex_);
    count_change();
    ring_.reached(sample.time);
    OpenSlot* slot = ring_.slot_for(sample.time);
    if (slot == nullptr) {
      ring_.lose(*ring_.open().front(), Loss::kTooOld, 1);
      return;
    }
    ring_.began_by(sample.time);
    ring_.add(slot, sample, {});
  }

  void add_wait(const WaitSample& wait) {
    std::lock_guard lock(mutex_);
    count_change();
    waits_.add(wait);
  }

  void correct_wait(const StackSample& sample) {
    std::lock_guard lock(mutex_);
    if (waits_.correct(sample)) count_change();
  }

  void end_wait(std::int32_t tid, MonotonicTime time) {
    std::lock_guard lock(mutex_);
    if (waits_.end(tid, time)) count_change();
  }

  void set_waits_seen(MonotonicTime time, DiskAccount disk, const LateOwners& late) {
    std::lock_guard lock(mutex_);
    count_change();
    waits_.set_seen(time, late);
    disk_account_ = disk;
  }

  void add_lost(Loss reason, std::uint64_t count, MonotonicTime when) {
    if (count == 0) return;
    std::lock_guard lock(mutex_);
    count_change();
    OpenSlot* slot = ring_.slot_for(when);
    ring_.lose(slot != nullptr ? *slot : *ring_.open().front(), reason, count);
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
    if (!ring_.end_process(id, ended)) return false;
    count_change();
    return true;
  }

  void update_process(const ProcessInfo& info) {
    std::lock_guard lock(mutex_);
    count_change();
    ring_.update_process(info);
  }

  void set_period_ns(std::int64_t period_ns, MonotonicTime from) {
    std::lock_guard lock(mutex_);
    ring_.set_period_ns(period_ns, from);
  }

  void advance(MonotonicTime now) {
    std::lock_guard lock(mutex_);
    const std::uint64_t thinned = ring_.times_thinned();
    if (ring_.advance(now, asked_back_.exchange(0))) {
      gaps_.forget_before({now.ns + clock_.wall_offset_ns() - limits_.retention_ns});
    }
    if (ring_.times_thinned() != thinned) count_change();
  }

  void finish(MonotonicTime now) {
    std::lock_guard lock(mutex_);
    ring_.finish(now);
  }

  std::optional<std::uint32_t> await_sealed(std::uint32_t sequence, const std::stop_token& stop,
                                            std::chrono::nanoseconds longest) const {
    std::unique_lock lock(mutex_);
    return ring_.await_sealed(lock, sequence, stop, longest);
  }

  std::optional<std::vector<ModuleId>> take_live_modules() { return ring_.take_live_modules(); }

  [[nodiscard]] std::uint64_t revision() const { return revision_; }

  Snapshot snapshot() {
    auto data = std::make_shared<SnapshotData>();
    std::lock_guard lock(mutex_);
    ring_.show(*data);
    data->waits_seen = waits_.seen();
    data->disk_account = disk_account_;
    data->gaps = gaps_.view();
    data->pending = pending_;
    return Snapshot(std::move(data));
  }

  StoreStats stats() const {
    std::lock_guard lock(mutex_);
    StoreStats stats;
    ring_.describe(stats);
    stats.gaps = gaps_.totals();
    return stats;
  }

 private:
  void count_change() { revision_.store(revision_.load(std::memory_order_relaxed) + 1); }

  const Limits limits_;
  const Clock& clock_;
  std::atomic<std::uint64_t> revision_{0};
  std::atomic<std::size_t> asked_back_ = 0;
  mutable std::mutex mutex_;  ///< guards everything below; held for one sample, one sweep, or one snapshot's pointers
  SlotRing ring_;
  WaitCounter waits_;
  DiskAccount disk_account_ = DiskAccount::kOfNone;
  GapLog gaps_;
  std::shared_ptr<const std::vector<PendingSample>> pending_;  ///< null: none
};

Store::Store(Limits limits, const Clock& clock, std::int64_t period_ns)
    : state_(std::make_unique<State>(limits, clock, period_ns)) {}
Store::~Store() = default;

void Store::begin() { state_->begin(); }
void Store::add(const StackSample& sample) { state_->add(sample); }
void Store::add_wait(const WaitSample& wait) { state_->add_wait(wait); }
void Store::correct_wait(const StackSample& sample) { state_->correct_wait(sample); }
void Store::end_wait(std::int32_t tid, MonotonicTime time) { state_->end_wait(tid, time); }
void Store::set_waits_seen(MonotonicTime time, DiskAccount disk, const LateOwners& late) {
  state_->set_waits_seen(time, disk, late);
}
void Store::add_lost(Loss reason, std::uint64_t count, MonotonicTime when) { state_->add_lost(reason, count, when); }
void Store::add_gap(const Gap& gap) { state_->add_gap(gap); }
void Store::set_pending(std::vector<PendingSample> pending) { state_->set_pending(std::move(pending)); }
void Store::give_back(std::size_t bytes) { state_->give_back(bytes); }
void Store::update_process(const ProcessInfo& info) { state_->update_process(info); }
bool Store::end_process(ProcessId id, WallTime ended) { return state_->end_process(id, ended); }
void Store::set_period_ns(std::int64_t period_ns, MonotonicTime from) { state_->set_period_ns(period_ns, from); }
void Store::advance(MonotonicTime now) { state_->advance(now); }
void Store::finish(MonotonicTime now) { state_->finish(now); }
std::optional<std::uint32_t> Store::await_sealed(std::uint32_t sequence, const std::stop_token& stop,
                                                 std::chrono::nanoseconds longest) const {
  return state_->await_sealed(sequence, stop, longest);
}
std::optional<std::vector<ModuleId>> Store::take_live_modules() { return state_->take_live_modules(); }
Snapshot Store::snapshot() const { return state_->snapshot(); }
std::uint64_t Store::revision() const { return state_->revision(); }
StoreStats Store::stats() const { return state_->stats(); }

}  // namespace flamed::store
