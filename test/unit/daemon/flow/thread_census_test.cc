// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/thread_census.h"

#include "test/catch.h"
#include "test/support/manual_clock.h"

namespace flamed::daemon {
namespace {

constexpr std::int64_t kSecond = kNsPerSecond;
/// 2026-01-31T14:05:00Z
constexpr std::int64_t kMinute = 1769868300 * kSecond;

struct CountedHost {
  [[nodiscard]] MonotonicTime at(std::int64_t second) const { return {1000 * kSecond + second * kSecond}; }
  /// In whole seconds of the wall clock since the host began, and of threads.
  struct Told {
    std::int64_t seconds = -1, error = -1;
    friend bool operator==(const Told&, const Told&) = default;
  };
  [[nodiscard]] Told in(std::int64_t from, std::int64_t to) const {
    const api::ThreadTime time = census.in({{kMinute + from * kSecond}, {kMinute + to * kSecond}});
    if (!time.ns) return {};
    const auto seconds = [](std::uint64_t ns) { return (static_cast<std::int64_t>(ns) + kSecond / 2) / kSecond; };
    return {seconds(*time.ns), seconds(time.error_ns)};
  }

  ManualClock clock{{1000 * kSecond}, {kMinute}};
  ThreadCensus census{clock, 24 * 60 * kNsPerMinute};
};
using Told = CountedHost::Told;

TEST_CASE("nothing is known before threads were counted, and all from then on") {
  CountedHost host;
  host.census.started(host.at(1));
  host.census.advance(host.at(5));
  CHECK(host.in(0, 5) == Told{});
  host.census.counted({host.at(8), 100});
  host.census.advance(host.at(60));
  CHECK(host.in(0, 60) == Told{5200, 0});  // the first seconds are too few to matter
  CHECK(host.in(20, 30) == Told{1000, 0});
  host.census.advance(host.at(120));
  CHECK(host.in(0, 120) == Told{11'200, 0});
  CHECK(host.in(-60, 60) == Told{});
}

TEST_CASE("notices of starts and ends change the number at once, also of threads that no round has met") {
  CountedHost host;
  host.census.counted({host.at(0), 100});
  host.census.advance(host.at(10));
  host.census.started(host.at(10));
  host.census.started(host.at(12));
  host.census.ended(host.at(14));
  host.census.ended(host.at(20));
  // A round that ended later than the notices that have come waits for the others.
  host.census.counted({host.at(30), 99});
  host.census.advance(host.at(22));
  host.census.ended(host.at(25));
  host.census.advance(host.at(60));
  CHECK(host.in(0, 60) == Told{6000 + 10 + 2 - 35, 0});
}

TEST_CASE("by how much a round finds another number is how much the time since the one before may be wrong") {
  CountedHost host;
  host.census.counted({host.at(0), 100});
  host.census.advance(host.at(10));
  host.census.counted({host.at(20), 103});
  host.census.advance(host.at(60));
  CHECK(host.in(0, 60) == Told{2000 + 40 * 103, 3 * 20});
}

TEST_CASE("after the clock was set back the sum begins anew, and the oldest minutes are dropped") {
  CountedHost host;
  host.census.counted({host.at(0), 10});
  host.census.advance(host.at(60));
  SECTION("set back") {
    host.clock.step_wall_ns(-3600 * kSecond);
    host.census.advance(host.at(120));
    CHECK(host.in(0, 60) == Told{});
    CHECK(host.in(-3540, -3480) == Told{600, 0});
  }
  SECTION("dropped") {
    host.census.advance(host.at(48 * 3600));
    CHECK(host.in(0, 60) == Told{});
    CHECK(host.in(47 * 3600, 48 * 3600) == Told{36'000, 0});
  }
}

}  // namespace
}  // namespace flamed::daemon
