// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "store/query/usage.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

std::uint64_t total(const Profile& profile) { return profile.nodes.front().total_samples; }

WallTime after_noon(std::int64_t ns) { return {kNoon.ns + ns}; }

}  // namespace

TEST_CASE("a window is exact to the sample: its first nanosecond is in, its last is out") {
  TestStore t;
  const MonotonicTime noon = t.clock.monotonic();
  t.pass(30);
  for (std::int64_t ns : {10, 11, 12, 13}) {
    t.add_at({noon.ns + ns}, {code(static_cast<std::uint64_t>(ns) * 16)});
  }
  for (int i = 0; i < 2; ++i) {
    Profile profile = t.profile_of({after_noon(11), after_noon(13)});
    CHECK(folded(profile) == std::vector<std::string>{"all;worker (100);f11 1", "all;worker (100);f12 1"});
    CHECK(profile.resolution_ns == 1);
    CHECK(profile.exact());
    CHECK(profile.used.from == after_noon(11));
    CHECK(profile.used.to == after_noon(13));
    CHECK(profile.quality.whole == 2);
    CHECK(total(t.profile_of({after_noon(14), after_noon(kNsPerSecond)})) == 0);
    t.pass(90);  // sealed by the second time
  }
}

TEST_CASE("any window equals a filter over all samples, also while they come late") {
  TestStore t;
  std::mt19937_64 random(3);
  struct Added {
    std::int64_t ns;
    std::int32_t pid;
  };
  std::vector<Added> all;
  const MonotonicTime start = t.clock.monotonic();
  for (int second = 0; second < 200; ++second) {
    for (int i = 0; i < 20; ++i) {
      std::int64_t ns = t.clock.monotonic().ns + static_cast<std::int64_t>(random() % kNsPerSecond);
      if (random() % 20 == 0) ns -= static_cast<std::int64_t>(random() % (80 * kNsPerSecond));
      if (ns < start.ns) ns = start.ns;
      const auto pid = static_cast<std::int32_t>(1 + random() % 3);
      t.add_at({ns}, {code(random() % 64)}, {pid, 1});
      all.push_back({ns - start.ns, pid});
    }
    t.pass(1);
  }
  REQUIRE(t.store.stats().quality.whole == all.size());
  for (int i = 0; i < 200; ++i) {
    auto from = static_cast<std::int64_t>(random() % (200 * kNsPerSecond));
    auto to = from + static_cast<std::int64_t>(random() % (i % 2 == 0 ? 2 * kNsPerSecond : 200 * kNsPerSecond));
    if (i % 5 == 0) from = from / kNsPerMinute * kNsPerMinute;
    to = std::min(to, 200 * kNsPerSecond);
    const auto inside = [&](std::int32_t pid) {
      return static_cast<std::uint64_t>(std::count_if(all.begin(), all.end(), [&](const Added& sample) {
        return sample.ns >= from && sample.ns < to && (pid == 0 || sample.pid == pid);
      }));
    };
    const WallWindow window{after_noon(from), after_noon(to)};
    CHECK(total(t.profile_of(window)) == inside(0));
    CHECK(total(t.profile_of(window, ProcessSelector{2, {}})) == inside(2));
    for (const ProcessUsage& usage : process_usage(t.store.snapshot(), window)) {
      CHECK(usage.samples == inside(usage.info.id.pid));
    }
  }
}

TEST_CASE("old minutes are rounded outwards at their edge, and the answer has the coarser resolution") {
  TestStore t({60 * kNsPerMinute, 8U << 20, 45'000});
  for (int second = 0; second < 10 * 60; ++second) {
    for (int i = 0; i < 20; ++i) t.add({code(16)});
    t.pass(1);
  }
  const StoreStats stats = t.store.stats();
  REQUIRE(stats.exact_from);
  CHECK(stats.exact_from->ns > kNoon.ns + kNsPerMinute);
  CHECK(stats.exact_bytes <= 45'000);
  CHECK(stats.exact_samples > 2000);
  const WallTime now = t.clock.wall();

  Profile mixed = t.profile_of({after_noon(30 * kNsPerSecond), {now.ns - 10 * kNsPerSecond}});
  CHECK(mixed.used.from == kNoon);
  CHECK(mixed.used.to.ns == now.ns - 10 * kNsPerSecond);
  CHECK(mixed.resolution_ns == kNsPerMinute);
  CHECK(total(mixed) == (10 * 60 - 10) * 20);

  Profile recent = t.profile_of({*stats.exact_from, {now.ns - 10 * kNsPerSecond}});
  CHECK(recent.resolution_ns == 1);
  CHECK(total(recent) ==
        static_cast<std::uint64_t>((now.ns - 10 * kNsPerSecond - stats.exact_from->ns) / kNsPerSecond * 20));
}

TEST_CASE("single samples never cost the minutes' counts any memory") {
  TestStore without({60 * kNsPerMinute, 4U << 20, 0});
  TestStore with({60 * kNsPerMinute, 4U << 20, 100'000});
  for (TestStore* t : {&without, &with}) {
    for (int second = 0; second < 20 * 60; ++second) {
      for (std::uint64_t i = 0; i < 30; ++i) t->add({code(16 * (i % 7))});
      t->pass(1);
    }
  }
  CHECK(with.store.stats().quality.whole == without.store.stats().quality.whole);
  CHECK(with.store.stats().slots == without.store.stats().slots);
  CHECK(total(with.profile()) == total(without.profile()));
  CHECK(with.store.stats().exact_bytes <= 100'000);
  CHECK(with.store.stats().exact_bytes > 50'000);
  CHECK(without.store.stats().exact_samples == 0);
  CHECK_FALSE(without.store.stats().exact_from);
}

TEST_CASE("a minute larger than the room for single samples keeps its counts") {
  TestStore t({60 * kNsPerMinute, 4U << 20, 50'000});
  for (int i = 0; i < 10'000; ++i) t.add({code(16)});
  t.pass(10);
  Profile profile = t.profile_of({after_noon(kNsPerSecond), after_noon(2 * kNsPerSecond)});
  CHECK(profile.resolution_ns == kNsPerMinute);
  CHECK(total(profile) == 10'000);
  CHECK(t.store.stats().exact_bytes <= 50'000);
  t.pass(60);
  for (int i = 0; i < 10; ++i) t.add({code(32)});
  CHECK(total(t.profile_of({{t.clock.wall().ns}, {t.clock.wall().ns + 1}})) == 10);
  CHECK(t.profile_of({{t.clock.wall().ns}, {t.clock.wall().ns + 1}}).exact());
}

TEST_CASE("by default single samples of the last hour of 8 CPUs are kept") {
  Limits limits;
  const std::size_t room = limits.exact_budget_bytes.value_or(limits.budget_bytes / 4);
  constexpr std::size_t kSamples = 8 * 99 * 3600;
  CHECK(room / kSamples > 20);  // a sealed sample takes 6 bytes, one of the open minute 14
}

TEST_CASE("a snapshot stays exact when the store drops the samples") {
  TestStore t({60 * kNsPerMinute, 4U << 20, 50'000});
  t.add_at({t.clock.monotonic().ns + 5}, {code(16)});
  t.add_at({t.clock.monotonic().ns + 10}, {code(32)});
  t.pass(70);
  const Snapshot held = t.store.snapshot();
  for (int second = 0; second < 600; ++second) {
    for (int i = 0; i < 30; ++i) t.add({code(16)});
    t.pass(1);
  }
  TestNamer namer;
  const Selection selection{{after_noon(5), after_noon(6)}};
  CHECK(total(build_profile(held, selection, namer)) == 1);
  CHECK(total(build_profile(t.store.snapshot(), selection, namer)) > 1);
}

}  // namespace flamed::store::test
