// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/wake_ups.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr int kLongMs = 60'000;

/// A descriptor that is readable, or not.
struct Flag {
  Fd fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  void set() const {
    const std::uint64_t one = 1;
    REQUIRE(::write(fd.get(), &one, sizeof(one)) == sizeof(one));
  }
  void clear() const {
    std::uint64_t count = 0;
    REQUIRE(::read(fd.get(), &count, sizeof(count)) == sizeof(count));
  }
};

struct Fixture {
  SystemClock clock;
  Flag notices;
  WakeUps wake_ups = WakeUps::open(notices.fd.get(), clock).value();
  [[nodiscard]] MonotonicTime in_ms(std::int64_t ms) const { return {clock.monotonic().ns + ms * kNsPerMs}; }
};

bool is_nothing(const WakeUp& brought) {
  return !brought.noticed && !brought.woken && brought.full_buffers.empty() && !brought.some_buffer_full &&
         brought.changed_cpus.empty() && !brought.lost_cpus && brought.dead_buffers.empty();
}

TEST_CASE("a wait ends at its timeout, without an event") {
  Fixture fixture;
  CHECK(is_nothing(fixture.wake_ups.wait(0, {})));
  const MonotonicTime before = fixture.clock.monotonic();
  CHECK(is_nothing(fixture.wake_ups.wait(20, {})));
  CHECK(fixture.clock.monotonic().ns - before.ns >= 20 * kNsPerMs);
  CHECK(is_nothing(fixture.wake_ups.wait(20, fixture.in_ms(kLongMs))));
}

TEST_CASE("a request ends the current wait or the next one, once") {
  Fixture fixture;
  fixture.wake_ups.wake();
  CHECK(fixture.wake_ups.wait(kLongMs, {}).woken);
  fixture.wake_ups.wake();
  CHECK(fixture.wake_ups.wait(kLongMs, fixture.in_ms(kLongMs)).woken);
  CHECK(is_nothing(fixture.wake_ups.wait(0, {})));
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    fixture.wake_ups.wake();
  });
  CHECK(fixture.wake_ups.wait(kLongMs, {}).woken);
}

TEST_CASE("notices end a wait until they are read, but not before their time") {
  Fixture fixture;
  fixture.notices.set();
  CHECK(fixture.wake_ups.wait(kLongMs, {}).noticed);
  CHECK(fixture.wake_ups.wait(kLongMs, {}).noticed);
  CHECK_FALSE(fixture.wake_ups.wait(10, fixture.in_ms(kLongMs)).noticed);
  const MonotonicTime from = fixture.in_ms(30);
  CHECK(fixture.wake_ups.wait(kLongMs, from).noticed);
  CHECK(fixture.clock.monotonic() >= from);
  fixture.notices.clear();
  CHECK_FALSE(fixture.wake_ups.wait(0, {}).noticed);
}

TEST_CASE("a buffer that is half full ends a wait, also while notices are ignored") {
  Fixture fixture;
  const Flag buffer;
  REQUIRE(fixture.wake_ups.watch_buffer(3, buffer.fd.get()).ok());
  buffer.set();
  CHECK(fixture.wake_ups.wait(kLongMs, {}).full_buffers == std::vector<int>{3});
  CHECK(fixture.wake_ups.wait(kLongMs, fixture.in_ms(kLongMs)).full_buffers == std::vector<int>{3});
}

TEST_CASE("a dead buffer is reported once, by its CPU, and ends no further wait") {
  Fixture fixture;
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const Fd event(ends[0]);
  REQUIRE(fixture.wake_ups.watch_buffer(70'000, event.get()).ok());
  REQUIRE(::close(ends[1]) == 0);
  CHECK(fixture.wake_ups.wait(kLongMs, {}).dead_buffers == std::vector<int>{70'000});
  CHECK(is_nothing(fixture.wake_ups.wait(0, {})));
  CHECK_FALSE(fixture.wake_ups.watch_buffer(1, -1).ok());
}

}  // namespace
}  // namespace flamed::daemon
