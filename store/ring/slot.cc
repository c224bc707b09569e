// SPDX-License-Identifier: Apache-2.0
#include "store/ring/slot.h"

#include <algorithm>
#include <span>
#include <utility>

#include "store/model/measure.h"

namespace flamed::store {
namespace {

// An open slot must account for at least as much as the sealed one that replaces it, so that sealing never needs room.
constexpr std::size_t kOpenSlotBytes = sizeof(OpenSlot) + sizeof(Slot) + 64;

MonotonicTime minute_start(MonotonicTime time, std::int64_t wall_offset_ns) {
  std::int64_t into = (time.ns + wall_offset_ns) % kNsPerMinute;
  if (into < 0) into += kNsPerMinute;
  return {time.ns - into};
}

}  // namespace

SlotBounds next_bounds(MonotonicTime time, std::optional<MonotonicTime> previous_end, std::int64_t wall_offset_ns,
                       std::int64_t period_ns) {
  MonotonicTime start = minute_start(time, wall_offset_ns);
  if (previous_end && start.ns - previous_end->ns < kNsPerSecond) start = *previous_end;
  MonotonicTime end{minute_start({start.ns + kNsPerSecond}, wall_offset_ns).ns + kNsPerMinute};
  return {start, end, wall_offset_ns, period_ns};
}

namespace {

constexpr std::uint32_t kGone = 0xffffffffU;

/// The slot without its waits. `row_of` and `places`: where each entry went.
Slot thin_slot(const Slot& old, const Thinning& how, std::uint64_t& samples, std::vector<std::uint32_t>& row_of,
               std::vector<std::uint32_t>& places) {
  Quality quality = old.quality;
  std::vector<HistogramEntry> rows;
  rows.reserve(old.histogram.entry_count());
  row_of.reserve(old.histogram.entry_count());
  const auto end_differently = [&](StackRef ref, std::uint64_t count) {
    const auto bucket = [&](StackRef of) -> std::uint64_t& {
      const std::optional<Truncation> reason = how.truncation_of(of);
      return reason ? quality.truncated[static_cast<std::size_t>(*reason)] : quality.whole;
    };
    bucket(ref) -= count;
    if (how.instead) bucket(*how.instead) += count;
  };
  old.histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
    if (!how.is_meant(thread)) {
      Histogram::for_each_stack(bytes, [&](StackRef ref, std::uint64_t count) {
        row_of.push_back(static_cast<std::uint32_t>(rows.size()));
        rows.push_back({thread, ref.key(), static_cast<std::uint32_t>(count)});
      });
      return;
    }
    const auto row = static_cast<std::uint32_t>(rows.size());
    if (how.instead) rows.push_back({thread, how.instead->key(), 0});
    Histogram::for_each_stack(bytes, [&](StackRef ref, std::uint64_t count) {
      row_of.push_back(how.instead ? row : kGone);
      if (how.instead) rows[row].count += static_cast<std::uint32_t>(count);
      if (how.instead && ref.key() == how.instead->key()) return;
      end_differently(ref, count);
      samples += count;
    });
  });
  Slot thinned{old.bounds, old.sequence, quality, Histogram(rows, &places), old.edition + 1};
  for (LongWait wait : old.long_waits) {
    if (how.is_meant(wait.thread)) {
      if (!how.instead) continue;
      wait.stack_key = how.instead->key();
    }
    thinned.long_waits.push_back(wait);
  }
  return thinned;
}

}  // namespace

SealedSlot thin(const SealedSlot& sealed, const Thinning& how, std::uint64_t& samples) {
  std::vector<std::uint32_t> row_of;  // by number in the log
  std::vector<std::uint32_t> places;
  Slot slot = thin_slot(*sealed.slot, how, samples, row_of, places);
  const auto moved = [](std::uint32_t& entry, std::span<const std::uint32_t> rows, std::span<const std::uint32_t> to) {
    if (rows[entry] == kGone) return false;
    entry = to[rows[entry]];
    return true;
  };
  SealedSlot thinned;
  if (sealed.log) {
    std::vector<LoggedSample> kept;
    kept.reserve(sealed.log->count());
    const auto keep = [&](LoggedSample sample) {
      if (moved(sample.entry, row_of, places)) kept.push_back(sample);
    };
    if (sealed.log->count() != 0) sealed.log->for_each(sealed.log->first(), {sealed.log->last().ns + 1}, keep);
    thinned.log = std::make_shared<const SampleLog>(std::move(kept));
  }
  if (sealed.slot->waits != nullptr) {
    // Their units are no samples.
    std::uint64_t units = 0;
    row_of.clear();
    slot.waits = std::make_shared<const Slot>(thin_slot(*sealed.slot->waits, how, units, row_of, places));
  }
  if (sealed.wait_log) {
    std::vector<LoggedWait> kept;
    kept.reserve(sealed.wait_log->count());
    sealed.wait_log->for_each([&](LoggedWait wait) {
      if (moved(wait.entry, row_of, places)) kept.push_back(wait);
    });
    thinned.wait_log = std::make_shared<const WaitLog>(kept);
  }
  thinned.slot = std::make_shared<const Slot>(std::move(slot));
  return thinned;
}

OpenSlot::OpenSlot(Budget& budget, Budget& log_budget, SlotBounds slot_bounds, std::uint32_t slot_sequence)
    : bounds(slot_bounds),
      sequence(slot_sequence),
      log(log_budget),
      wait_log(log_budget),
      budget_(budget),
      log_budget_(log_budget),
      entries_(budget),
      index_(budget) {
  budget_.take(kOpenSlotBytes);
}

OpenSlot::~OpenSlot() { budget_.give_back(kOpenSlotBytes + long_waits_.size() * sizeof(LongWait)); }

SlotBounds OpenSlot::bounds_of_waits() const {
  SlotBounds same = bounds;
  same.period_ns = kWaitUnitNs;
  return same;
}

OpenSlot& OpenSlot::waits() {
  if (waits_ == nullptr) {
    waits_ = std::make_unique<OpenSlot>(budget_, log_budget_, bounds_of_waits(), sequence);
  }
  return *waits_;
}

bool OpenSlot::add_long_wait(const LongWait& wait) {
  if (!budget_.has_room(sizeof(LongWait))) return false;
  budget_.take(sizeof(LongWait));
  long_waits_.push_back(wait);
  return true;
}

Slot OpenSlot::View::until(MonotonicTime time) const {
  std::vector<HistogramEntry> rows;
  rows.reserve(entry_count);
  entries.for_each_below(entry_count, [&](std::uint32_t, const HistogramEntry& entry) { rows.push_back(entry); });
  Slot slot{bounds, sequence, quality, Histogram(rows)};
  slot.bounds.end = std::min(bounds.end, std::max(time, MonotonicTime{bounds.start.ns + 1}));
  return slot;
}

OpenSlot::View OpenSlot::view() {
  View view{bounds,     sequence, quality,         entries_.view(), entry_count(),
            log.view(), nullptr,  wait_log.view(), long_waits_};
  if (waits_ != nullptr) {
    waits_->bounds = bounds_of_waits();
    view.waits = std::make_shared<const View>(waits_->view());
  }
  return view;
}

OpenSlot::Count OpenSlot::count(std::uint32_t thread, StackRef ref, Room room, std::uint32_t amount) {
  std::uint32_t key = ref.key();
  std::uint64_t hash = hash_of(thread, key);
  std::uint32_t found = index_.find(hash, [&](std::uint32_t id) {
    const HistogramEntry& entry = entries_[id];
    return entry.thread == thread && entry.stack_key == key;
  });
  if (found != IdIndex::kNone) {
    entries_.writable(found).count += amount;
    return {Counted::kAgain, found};
  }
  std::size_t needed = room == Room::kOrdinary ? kReserveCount + 1 : 1;
  if (!entries_.has_room(needed)) return {};
  if (!index_.make_room([&](std::uint32_t id) { return hash_of(entries_[id].thread, entries_[id].stack_key); },
                        needed)) {
    return {};
  }
  std::optional<std::uint32_t> id = entries_.allocate();
  if (!id) return {};
  entries_.writable(*id) = HistogramEntry{thread, key, amount};
  index_.insert(hash, *id);
  return {Counted::kFirstTime, *id};
}

Slot OpenSlot::seal_counts(std::vector<std::uint32_t>& places) {
  std::vector<HistogramEntry> rows;
  rows.reserve(entries_.size());
  entries_.for_each([&](std::uint32_t id) { rows.push_back(entries_[id]); });
  return {bounds, sequence, quality, Histogram(rows, &places), 0, nullptr, long_waits_};
}

SealedSlot OpenSlot::seal() {
  std::vector<std::uint32_t> places;
  Slot slot = seal_counts(places);
  SealedSlot sealed;
  sealed.log = log.seal(places);
  if (waits_ != nullptr) {
    waits_->bounds = bounds_of_waits();
    Slot waits = waits_->seal_counts(places);
    waits.edition = kWaitsEdition;
    slot.waits = std::make_shared<const Slot>(std::move(waits));
  }
  sealed.wait_log = wait_log.seal(places);
  sealed.slot = std::make_shared<const Slot>(std::move(slot));
  return sealed;
}

}  // namespace flamed::store
