// SPDX-License-Identifier: Apache-2.0
//
// The pace of visits: what share of a CPU they take, and that their times have no fixed step.
#include "daemon/waits/visit_pace.h"

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "daemon/waits/cpu_credit.h"
#include "daemon/waits/old_stack_pace.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr MonotonicTime kBegin{100 * kNsPerSecond};

struct Spent {
  std::int64_t cpu_ns = 0;
  int turns = 0;
  std::int64_t longest_turn_ns = 0;
};

/// Makes turns for so long. Each does at most `work_ns`, and costs a wake-up besides.
Spent spend(VisitPace& pace, std::int64_t duration_ns, std::int64_t work_ns, std::int64_t wake_up_ns) {
  Spent spent;
  while (pace.next().ns < kBegin.ns + duration_ns) {
    const MonotonicTime now = pace.next();
    const std::int64_t turn_ns = std::min(pace.turn_ns(now), work_ns);
    spent.longest_turn_ns = std::max(spent.longest_turn_ns, turn_ns);
    spent.cpu_ns += turn_ns + wake_up_ns;
    ++spent.turns;
    pace.ended({now.ns + turn_ns}, turn_ns + wake_up_ns);
  }
  return spent;
}

TEST_CASE("with few threads there is a turn a second on average, which visits all of them") {
  VisitPace pace({}, kBegin);
  const Spent spent = spend(pace, 1000 * kNsPerSecond, 250'000, 30'000);
  CHECK(spent.turns > 950);
  CHECK(spent.turns < 1050);
  CHECK(spent.longest_turn_ns == 250'000);
}

TEST_CASE("with any number of threads visits take their share of a CPU and no more") {
  const double share = GENERATE(0.0001, 0.0005, 0.002);
  VisitPace pace({.share = share}, kBegin);
  const Spent spent = spend(pace, 1000 * kNsPerSecond, 1'000'000'000, 30'000);
  CHECK(static_cast<double>(spent.cpu_ns) < 1.02 * share * 1e12);
  CHECK(static_cast<double>(spent.cpu_ns) > 0.9 * share * 1e12);
}

TEST_CASE("no turn is so short that it is mostly a wake-up") {
  VisitPace pace({.share = 0.0001}, kBegin);
  for (int i = 0; i < 100; ++i) {
    const MonotonicTime now = pace.next();
    const std::int64_t turn_ns = pace.turn_ns(now);
    CHECK(turn_ns >= 200'000);
    pace.ended({now.ns + turn_ns}, turn_ns + 900'000);
  }
}

TEST_CASE("a share that was not used for long is not made up for by a long turn") {
  VisitPace pace({}, kBegin);
  CHECK(pace.turn_ns({kBegin.ns + 3600 * kNsPerSecond}) <= 1'000'000);
}

TEST_CASE("a turn that took too long is followed by a longer pause") {
  VisitPace pace({}, kBegin);
  const MonotonicTime now = pace.next();
  pace.ended(now, 20'000'000);
  CHECK(pace.next().ns - now.ns > 20 * kNsPerSecond);
}

TEST_CASE("a turn that took far too long does not stop the visits for longer than two minutes") {
  VisitPace pace({.share = 0.0004}, kBegin);
  for (int i = 0; i < 20; ++i) {
    const MonotonicTime now = pace.next();
    pace.ended(now, 10 * kNsPerSecond);
    CHECK(pace.next().ns - now.ns < 2 * kNsPerMinute);
  }
}

TEST_CASE("the times between turns differ") {
  VisitPace pace({}, kBegin);
  std::int64_t shortest = INT64_MAX;
  std::int64_t longest = 0;
  for (int i = 0; i < 200; ++i) {
    const MonotonicTime now = pace.next();
    pace.ended(now, 100'000);
    const std::int64_t between = pace.next().ns - now.ns;
    shortest = std::min(shortest, between);
    longest = std::max(longest, between);
  }
  CHECK(shortest >= kNsPerSecond / 2);
  CHECK(shortest < kNsPerSecond * 6 / 10);
  CHECK(longest > kNsPerSecond * 14 / 10);
  CHECK(longest <= kNsPerSecond * 3 / 2);
}

TEST_CASE("stacks of old waits are read as far as their share of CPU time goes") {
  OldStackPace pace(kBegin);
  MonotonicTime now = kBegin;
  std::int64_t cpu_ns = 0;
  for (; now.ns < kBegin.ns + 1000 * kNsPerSecond; now.ns += kNsPerSecond) {
    const std::uint32_t count = pace.count(now);
    CHECK(count <= 64);
    if (count == 0) continue;
    pace.spend(count, 100'000 * std::int64_t{count});
    cpu_ns += 100'000 * std::int64_t{count};
  }
  CHECK(cpu_ns > 200 * kNsPerMs);  // 0.02 %
  CHECK(cpu_ns < 230 * kNsPerMs);  // and what there was at first
}

TEST_CASE("old stacks that once took very long are read again when there is time") {
  OldStackPace pace(kBegin);
  REQUIRE(pace.count(kBegin) > 1);
  for (int i = 0; i < 20; ++i) pace.spend(1, 10 * kNsPerSecond);
  CHECK(pace.count(kBegin) == 0);
  MonotonicTime now{kBegin.ns + 200 * kNsPerSecond};
  REQUIRE(pace.count(now) == 1);
  for (int i = 0; i < 40; ++i) {
    pace.spend(1, 40'000);
    now.ns += 100 * kNsPerSecond;
    CHECK(pace.count(now) >= 1);
  }
  CHECK(pace.count(now) == 64);
}

TEST_CASE("credit is a share of the time, and is kept up to a limit") {
  CpuCredit credit({.share = 0.01, .most_ns = 5'000'000, .first_ns = 1'000'000}, kBegin);
  CHECK(credit.left_ns(kBegin) == 1'000'000);
  credit.spend(3'000'000);
  CHECK(credit.left_ns(kBegin) == -2'000'000);
  CHECK(credit.left_ns({kBegin.ns + 400 * kNsPerMs}) == 2'000'000);
  CHECK(credit.left_ns({kBegin.ns + 3600 * kNsPerSecond}) == 5'000'000);
}

TEST_CASE("credit is spent in advance up to a limit") {
  CpuCredit credit({.share = 0.01, .most_ns = 5'000'000, .first_ns = 1'000'000, .most_debt_ns = 3'000'000}, kBegin);
  credit.spend(2'000'000);
  CHECK(credit.left_ns(kBegin) == -1'000'000);
  credit.spend(kNsPerSecond);
  CHECK(credit.left_ns(kBegin) == -3'000'000);
  CHECK(credit.left_ns({kBegin.ns + 400 * kNsPerMs}) == 1'000'000);
}

}  // namespace
}  // namespace flamed::daemon
