// SPDX-License-Identifier: Apache-2.0
#include "store/ring/wait_counter.h"

#include <algorithm>

#include "store/model/measure.h"

namespace flamed::store {

void WaitCounter::add(const WaitSample& wait) {
  const StackSample& sample = wait.sample;
  ring_.reached(sample.time);
  if (ring_.slot_for(sample.time) == nullptr) return;
  std::optional<StandingWait> known = ring_.standing_waits().find(sample.tid);
  if (wait.is_known) {
    if (known && wait.has_user_stack) replace_stack(*known, sample);
    return;
  }
  std::int64_t rest_ns = 0;
  MonotonicTime since = wait.last_seen.value_or(sample.time);
  if (known) {
    since = wait.last_seen.value_or(std::min(seen_.of(sample.owner), sample.time));
    count_span(*known, since);
    rest_ns = known->rest_ns;
  }
  store_unseen(sample, WaitReason::kRunQueue, since, units_of(wait.queued_ns, rest_ns));
  store_unseen(sample, WaitReason::kDisk, since, units_of(wait.disk_ns, rest_ns));
  const std::optional<SlotRing::Place> place = store(sample, since, units_of(wait.waited_ns, rest_ns));
  if (!place || !ring_.standing_waits().put(sample.tid, {place->thread, place->ref.key(), sample.time, rest_ns})) {
    ring_.standing_waits().remove(sample.tid);
  }
}

bool WaitCounter::correct(const StackSample& sample) {
  const std::optional<StandingWait> known = ring_.standing_waits().find(sample.tid);
  if (!known || known->from > sample.time || ring_.slot_for(sample.time) == nullptr) return false;
  replace_stack(*known, sample);
  return true;
}

bool WaitCounter::end(std::int32_t tid, MonotonicTime time) {
  std::optional<StandingWait> known = ring_.standing_waits().find(tid);
  if (!known) return false;
  if (ring_.slot_for(time) != nullptr)
    count_span(*known, std::min(time, seen_.of(ring_.threads()[known->thread].owner)));
  ring_.standing_waits().remove(tid);
  return true;
}

std::uint32_t WaitCounter::units_of(std::int64_t ns, std::int64_t& rest_ns) {
  rest_ns += std::max<std::int64_t>(ns, 0);
  const std::int64_t units = rest_ns / kWaitUnitNs;
  rest_ns -= units * kWaitUnitNs;
  return static_cast<std::uint32_t>(units);
}

std::optional<SlotRing::Place> WaitCounter::store(const StackSample& sample, MonotonicTime since, std::uint32_t units) {
  OpenSlot* const slot = ring_.slot_for(sample.time);
  // Some of it may be from before, told only now.
  const MonotonicTime from{std::min(since.ns, sample.time.ns - units * kWaitUnitNs)};
  return ring_.add(slot != nullptr ? slot : ring_.open().front().get(), sample, {units, true, from, sample.time});
}

void WaitCounter::store_unseen(const StackSample& sample, WaitReason reason, MonotonicTime since, std::uint32_t units) {
  if (units == 0) return;
  const Frame why = wait_frame(reason);
  StackSample unseen = sample;
  unseen.frames = {&why, 1};
  unseen.truncation.reset();
  static_cast<void>(store(unseen, since, units));
}

void WaitCounter::count_span(StandingWait& wait, MonotonicTime until) {
  if (until <= wait.from) return;
  MonotonicTime from = wait.from;
  const MonotonicTime open_from = ring_.open().front()->bounds.start;
  if (open_from.ns - from.ns > kSealDelayNs) {
    from = std::min(until, open_from);
    count_long_wait(*ring_.open().back(), wait, from);
  }
  for (const auto& slot : ring_.open()) {
    const bool is_last = slot == ring_.open().back();
    const MonotonicTime end = is_last ? until : std::min(until, slot->bounds.end);
    if (end <= from) continue;
    const std::uint32_t units = units_of(end.ns - from.ns, wait.rest_ns);
    if (units != 0) count_units(*slot, wait, {units, true, from, end});
    from = end;
  }
}

void WaitCounter::count_long_wait(OpenSlot& slot, StandingWait& wait, MonotonicTime until) {
  if (!slot.waits().add_long_wait({wait.thread, wait.stack_key, wait.from, until})) {
    slot.waits().quality.lost[static_cast<std::size_t>(Loss::kStoreFull)] +=
        units_of(until.ns - wait.from.ns, wait.rest_ns);
  }
  ring_.mark_used(slot, wait.thread, StackRef::from_key(wait.stack_key));
}

void WaitCounter::count_units(OpenSlot& slot, const StandingWait& wait, SlotRing::Amount amount) {
  const StackRef ref = StackRef::from_key(wait.stack_key);
  StackSample sample;
  sample.owner = ring_.threads()[wait.thread].owner;
  Quality& quality = slot.waits().quality;
  if (!ring_.count(slot, wait.thread, ref, sample, amount)) {
    quality.lost[static_cast<std::size_t>(Loss::kStoreFull)] += amount.units;
    return;
  }
  const std::optional<Truncation> truncation =
      ref.cut ? std::optional(Truncation::kStoreFull) : ring_.tree().truncation_of(ref.stack);
  (truncation ? quality.truncated[static_cast<std::size_t>(*truncation)] : quality.whole) += amount.units;
}

void WaitCounter::replace_stack(const StandingWait& known, const StackSample& sample) {
  if (const std::optional<SlotRing::Place> place = store(sample, sample.time, 0)) {
    ring_.standing_waits().put(sample.tid, {place->thread, place->ref.key(), known.from, known.rest_ns});
  }
}

}  // namespace flamed::store
