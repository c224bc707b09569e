// SPDX-License-Identifier: Apache-2.0
#include "store/ring/slot.h"

#include "test/catch.h"

namespace flamed::store {
namespace {

constexpr std::int64_t kSecond = kNsPerSecond;

SlotBounds bounds(std::int64_t second, std::optional<std::int64_t> previous_end, std::int64_t offset_ns = 0) {
  std::optional<MonotonicTime> previous;
  if (previous_end) previous = MonotonicTime{*previous_end * kSecond};
  return next_bounds({second * kSecond}, previous, offset_ns, 1);
}

}  // namespace

TEST_CASE("a first slot is the wall clock's minute around its first sample") {
  SlotBounds slot = bounds(100, {}, 10 * kSecond);  // 110 s on the wall: the minute from 60 to 120
  CHECK(slot.wall_start().ns == 60 * kSecond);
  CHECK(slot.wall_end().ns == 120 * kSecond);
  CHECK(slot.start.ns == 50 * kSecond);
}

TEST_CASE("slots join without a gap when the clocks drift apart") {
  SlotBounds ahead = bounds(61, 60, 3 * kNsPerMs);
  CHECK(ahead.start.ns == 60 * kSecond);
  CHECK(ahead.end.ns == 120 * kSecond - 3 * kNsPerMs);
  SlotBounds behind = bounds(61, 60, -3 * kNsPerMs);
  CHECK(behind.start.ns == 60 * kSecond);
  CHECK(behind.end.ns == 120 * kSecond + 3 * kNsPerMs);
}

TEST_CASE("after a long pause the next slot begins with its own minute") {
  SlotBounds slot = bounds(1000, 60);
  CHECK(slot.start.ns == 960 * kSecond);
  CHECK(slot.end.ns == 1020 * kSecond);
}

TEST_CASE("a slot that follows an early end takes the rest of the minute") {
  SlotBounds slot = bounds(75, 70);
  CHECK(slot.start.ns == 70 * kSecond);
  CHECK(slot.end.ns == 120 * kSecond);
}

TEST_CASE("a slot covers the moment of its first sample") {
  for (std::int64_t previous = 0; previous < 240; ++previous) {
    for (std::int64_t time = previous; time < previous + 200; ++time) {
      for (std::int64_t offset : {0, 400'000'000, -400'000'000}) {
        SlotBounds slot = bounds(time, previous, offset);
        if (!slot.covers({time * kSecond})) FAIL("previous end " << previous << ", time " << time);
        if (slot.start.ns < previous * kSecond) FAIL("overlap at previous end " << previous << ", time " << time);
      }
    }
  }
  SUCCEED();
}

}  // namespace flamed::store
