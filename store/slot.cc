// SPDX-License-Identifier: Apache-2.0
#include "store/slot.h"

#include <utility>

namespace flamed::store {
namespace {

// An open slot must account for no less than the sealed one that takes its place, so that sealing never needs room.
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

OpenSlot::OpenSlot(Budget& budget, Budget& log_budget, SlotBounds slot_bounds, std::uint32_t slot_sequence)
    : bounds(slot_bounds), sequence(slot_sequence), log(log_budget), budget_(budget), entries_(budget), index_(budget) {
  budget_.take(kOpenSlotBytes);
}

OpenSlot::~OpenSlot() { budget_.give_back(kOpenSlotBytes); }

OpenSlot::Count OpenSlot::count(std::uint32_t thread, StackRef ref, Room room) {
  std::uint32_t key = ref.key();
  std::uint64_t hash = hash_of(thread, key);
  std::uint32_t found = index_.find(hash, [&](std::uint32_t id) {
    const HistogramEntry& entry = entries_[id];
    return entry.thread == thread && entry.stack_key == key;
  });
  if (found != IdIndex::kNone) {
    ++entries_.writable(found).count;
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
  entries_.writable(*id) = HistogramEntry{thread, key, 1};
  index_.insert(hash, *id);
  return {Counted::kFirstTime, *id};
}

SealedSlot OpenSlot::seal() {
  std::vector<HistogramEntry> rows;
  rows.reserve(entries_.size());
  entries_.for_each([&](std::uint32_t id) { rows.push_back(entries_[id]); });
  std::vector<std::uint32_t> places;
  auto slot = std::make_shared<const Slot>(Slot{bounds, sequence, quality, Histogram(rows, &places)});
  return {std::move(slot), log.seal(places)};
}

}  // namespace flamed::store
