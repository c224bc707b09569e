// SPDX-License-Identifier: Apache-2.0
#include "store/model/gap.h"

#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store {
namespace {

using test::kNoon;
using test::mentions;
using test::TestStore;

WallTime at(std::int64_t ms) { return {kNoon.ns + ms * kNsPerMs}; }
Gap silent(std::int64_t from_ms, std::int64_t to_ms, std::uint16_t cpu) {
  return {.from = at(from_ms), .to = at(to_ms), .reason = GapReason::kTimerSilent, .cpu = cpu};
}

TEST_CASE("an answer has the gaps of its window, and a sentence that time is missing") {
  TestStore fixture;
  fixture.pass(120);
  fixture.store.add_gap(silent(10'000, 11'000, 1));
  fixture.store.add_gap(silent(70'000, 70'500, 0));
  const Profile all = fixture.profile();
  REQUIRE(all.missing.size() == 2);
  CHECK(all.missing[0] == silent(10'000, 11'000, 1));
  CHECK(mentions(all.warnings, "a CPU's timer had gone silent (1.5 s in 2 parts)"));

  const Profile later = fixture.profile_of({at(60'000), at(90'000)});
  REQUIRE(later.missing.size() == 1);
  CHECK(later.missing[0].cpu == 0);
  CHECK(fixture.profile_of({at(20'000), at(40'000)}).missing.empty());
  CHECK_FALSE(mentions(fixture.profile_of({at(20'000), at(40'000)}).warnings, "Time without samples"));
}

TEST_CASE("lost samples are a gap of the timeline without a sentence: the quality counts them") {
  TestStore fixture;
  fixture.pass(120);
  fixture.store.add_gap({.from = at(1000), .to = at(2000), .reason = GapReason::kLost, .lost_samples = 7});
  const Profile all = fixture.profile();
  REQUIRE(all.missing.size() == 1);
  CHECK(all.missing[0].lost_samples == 7);
  CHECK_FALSE(mentions(all.warnings, "Time without samples"));
}

TEST_CASE("a lasting gap is one for each CPU, and its length is counted once") {
  GapLog log;
  for (std::int64_t second = 0; second < 600; ++second) {
    for (std::uint16_t cpu = 0; cpu < 4; ++cpu) log.add(silent(second * 1000, second * 1000 + 1000, cpu));
  }
  CHECK(log.view()->size() == 4);
  CHECK(log.view()->front() == silent(0, 600'000, 0));
  const GapLog::Total& total = log.totals()[static_cast<std::size_t>(GapReason::kTimerSilent)];
  CHECK(total.count == 4);
  CHECK(total.ns == 2400 * kNsPerSecond);
}

TEST_CASE("the oldest of too many gaps are dropped") {
  GapLog log;
  for (std::int64_t i = 0; i < 1000; ++i) log.add(silent(i * 1000, i * 1000 + 500, 0));
  CHECK(log.view()->size() == GapLog::kMost);
  CHECK(log.view()->back() == silent(999'000, 999'500, 0));
}

TEST_CASE("gaps are kept as long as minutes are") {
  TestStore fixture({.retention_ns = 5 * kNsPerMinute});
  fixture.pass(60);
  fixture.store.add_gap(silent(10'000, 11'000, 1));
  fixture.pass_minutes(3);
  CHECK(fixture.profile().missing.size() == 1);
  fixture.pass_minutes(5);
  CHECK(fixture.profile().missing.empty());
}

TEST_CASE("a very short or negative time is no gap") {
  GapLog log;
  log.add(silent(1000, 1000, 0));
  log.add(silent(1000, 500, 0));
  CHECK(log.view()->empty());
}

}  // namespace
}  // namespace flamed::store
