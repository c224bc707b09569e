// SPDX-License-Identifier: Apache-2.0
#include "store/query/timeline.h"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "store/query/heatmap.h"
#include "store/query/timed_samples.h"
#include "store/query/usage.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

WallTime after_noon(std::int64_t ns) { return {kNoon.ns + ns}; }

Timeline timeline_of(const TestStore& t, const Selection& selection, std::int64_t step_ns, std::size_t most = 0) {
  QueryBudget budget;
  return timeline(t.store.snapshot(), selection, step_ns, most, budget).value();
}

/// A host whose every second has one sample more than the one before, up to ten. Every third sample is the kernel's.
struct Ramp {
  explicit Ramp(Limits limits = {}) : t(limits) {
    for (int second = 0; second < 150; ++second) {
      for (int i = 0; i <= second % 10; ++i) {
        std::vector<Frame> frames{code(16)};
        if (i % 3 == 2) frames.push_back({kKernelModule, 1});
        t.add_at({t.clock.monotonic().ns + i * 50 * kNsPerMs}, frames, {1 + i, 1});
      }
      t.pass(1);
    }
  }
  static std::uint64_t samples(int second) { return static_cast<std::uint64_t>(second % 10 + 1); }
  TestStore t;
};

}  // namespace

TEST_CASE("a timeline has the user's and the kernel's time of each second") {
  Ramp ramp;
  const Timeline line = timeline_of(ramp.t, {{after_noon(0), after_noon(150 * kNsPerSecond)}}, kNsPerSecond);
  CHECK(line.exact());
  CHECK(line.start == kNoon);
  CHECK(line.step_ns == kNsPerSecond);
  REQUIRE(line.steps.size() == 150);
  for (int second = 0; second < 150; ++second) {
    const TimelineStep& step = line.steps[static_cast<std::size_t>(second)];
    CHECK(step.user_samples + step.kernel_samples == Ramp::samples(second));
    CHECK(step.kernel_samples == Ramp::samples(second) / 3);
    CHECK(step.kernel_ns == step.kernel_samples * kPeriodNs);
    CHECK(step.user_ns == step.user_samples * kPeriodNs);
  }
  CHECK(line.quality.whole == ramp.t.store.stats().quality.whole);
}

TEST_CASE("steps begin at multiples of their length, and the first has only samples in the window") {
  Ramp ramp;
  const Timeline line =
      timeline_of(ramp.t, {{after_noon(12'100 * kNsPerMs), after_noon(38 * kNsPerSecond)}}, 10 * kNsPerSecond);
  CHECK(line.start == after_noon(10 * kNsPerSecond));
  REQUIRE(line.steps.size() == 3);
  // Second 12 has samples at 0, 50 and 100 ms, of which one is left.
  CHECK(line.steps[0].user_samples + line.steps[0].kernel_samples == 1 + 4 + 5 + 6 + 7 + 8 + 9 + 10);
  CHECK(line.steps[1].user_samples + line.steps[1].kernel_samples == 55);
  CHECK(line.steps[2].user_samples + line.steps[2].kernel_samples == 36);
}

TEST_CASE("where only minutes are kept, the step is rounded up to minutes and the answer says so") {
  Ramp ramp({60 * kNsPerMinute, 8U << 20, 0});
  const Timeline line = timeline_of(ramp.t, {{after_noon(0), after_noon(150 * kNsPerSecond)}}, 10 * kNsPerSecond);
  CHECK(line.step_ns == kNsPerMinute);
  CHECK(mentions(line.warnings, "the step is 60 seconds instead of the 10 asked for"));
  REQUIRE(line.steps.size() == 3);
  CHECK(line.steps[0].user_samples + line.steps[0].kernel_samples == 330);
  CHECK(line.steps[2].user_samples + line.steps[2].kernel_samples == 165);
  CHECK(timeline_of(ramp.t, {ramp.t.everything()}, 90 * kNsPerSecond).step_ns == 2 * kNsPerMinute);
}

TEST_CASE("a timeline of the largest processes has their steps") {
  Ramp ramp;
  const Selection selection{{after_noon(0), after_noon(150 * kNsPerSecond)}};
  const Timeline line = timeline_of(ramp.t, selection, 30 * kNsPerSecond, 3);
  REQUIRE(line.processes.size() == 3);
  CHECK(line.processes[0].info.id.pid == 1);
  CHECK(line.processes[2].info.id.pid == 3);
  for (const TimelineStep& step : line.processes[0].steps) CHECK(step.user_samples == 30);
  for (const TimelineStep& step : line.processes[2].steps) CHECK(step.kernel_samples == 24);
  const Timeline all = timeline_of(ramp.t, selection, 30 * kNsPerSecond, 100);
  CHECK(all.processes.size() == 10);
  for (std::size_t step = 0; step < all.steps.size(); ++step) {
    std::uint64_t sum = 0;
    for (const ProcessTimeline& process : all.processes)
      sum += process.steps[step].user_ns + process.steps[step].kernel_ns;
    CHECK(sum == all.steps[step].user_ns + all.steps[step].kernel_ns);
  }
}

TEST_CASE("a timeline of everything in minutes equals that of all processes by name, in the first and later queries") {
  TestStore t;
  for (int second = 0; second < 400; ++second) {
    for (int i = 0; i <= second % 10; ++i) {
      std::vector<Frame> frames{code(static_cast<std::uint64_t>(16 * (1 + second % 7)))};
      if (i % 3 == 2) frames.push_back({kKernelModule, 1});
      const auto truncation = i % 4 == 1 ? std::optional(Truncation::kDepthLimit) : std::nullopt;
      t.add_at({t.clock.monotonic().ns + i * 50 * kNsPerMs}, frames, {1 + i, 1}, truncation);
    }
    t.pass(1);
  }
  const Selection everything{{after_noon(20 * kNsPerSecond), after_noon(390 * kNsPerSecond)}};
  Selection by_name = everything;
  for (int pid = 1; pid <= 10; ++pid) by_name.processes.push_back({pid, {}});
  const Timeline expected = timeline_of(t, by_name, kNsPerMinute, 100);
  REQUIRE(expected.processes.size() == 10);
  REQUIRE(expected.quality.truncated_total() != 0);
  const auto is_same = [](const std::vector<TimelineStep>& a, const std::vector<TimelineStep>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const TimelineStep& x, const TimelineStep& y) {
      return x.user_samples == y.user_samples && x.kernel_samples == y.kernel_samples && x.user_ns == y.user_ns &&
             x.kernel_ns == y.kernel_ns;
    });
  };
  std::size_t bytes = t.store.stats().used_bytes;
  for (const bool first : {true, false}) {
    INFO((first ? "first" : "later"));
    const Timeline line = timeline_of(t, everything, kNsPerMinute, 100);
    CHECK(is_same(line.steps, expected.steps));
    REQUIRE(line.processes.size() == expected.processes.size());
    for (std::size_t i = 0; i < line.processes.size(); ++i) {
      CHECK(line.processes[i].info.id == expected.processes[i].info.id);
      CHECK(is_same(line.processes[i].steps, expected.processes[i].steps));
    }
    CHECK(line.quality.whole == expected.quality.whole);
    CHECK(line.quality.truncated == expected.quality.truncated);
    // The sums of the minutes are kept.
    CHECK((t.store.stats().used_bytes > bytes) == first);
    bytes = t.store.stats().used_bytes;
  }
}

TEST_CASE("a timeline of seconds without a bound is refused") {
  Ramp ramp;
  QueryLimits limits;
  limits.nodes = 100;
  QueryBudget budget(limits, nullptr);
  CHECK(timeline(ramp.t.store.snapshot(), {ramp.t.everything()}, 1, 0, budget).error().code() == E2BIG);
}

TEST_CASE("a heat map has a column for each second and rows for its fractions") {
  Ramp ramp;
  QueryBudget budget;
  const Heatmap map =
      heatmap(ramp.t.store.snapshot(), {{after_noon(500 * kNsPerMs), after_noon(145 * kNsPerSecond)}}, 20, budget)
          .value();
  CHECK(map.start == kNoon);
  CHECK(map.columns == 145);
  CHECK(map.rows == 20);
  REQUIRE(map.counts.size() == 145 * 20);
  std::uint64_t total = 0;
  for (std::size_t column = 0; column < 145; ++column) {
    for (std::size_t row = 0; row < 20; ++row) {
      const std::uint32_t expected = column != 0 && row <= column % 10 ? 1 : 0;
      CHECK(map.counts[column * 20 + row] == expected);
      total += expected;
    }
  }
  CHECK(map.total_samples == total);
  CHECK(map.most == 1);
  CHECK(map.exact());
}

TEST_CASE("a heat map of a time without single samples is an error that says so") {
  Ramp ramp({60 * kNsPerMinute, 8U << 20, 0});
  QueryBudget budget;
  CHECK(heatmap(ramp.t.store.snapshot(), {ramp.t.everything()}, 20, budget).error().code() == ENODATA);
}

TEST_CASE("a selection of a part of each second has the samples of those rows of the heat map and no others") {
  Ramp ramp;
  QueryBudget budget;
  Selection selection{{after_noon(0), after_noon(150 * kNsPerSecond)}};
  selection.part = SecondPart{100 * kNsPerMs, 250 * kNsPerMs};
  // At 100, 150 and 200 ms, of the seconds with that many.
  std::uint64_t expected = 0;
  for (int second = 0; second < 150; ++second) {
    for (std::uint64_t at = 2; at <= 4; ++at) expected += at < Ramp::samples(second) ? 1 : 0;
  }
  const Timeline line = timeline_of(ramp.t, selection, kNsPerSecond);
  std::uint64_t in_line = 0;
  for (const TimelineStep& step : line.steps) in_line += step.user_samples + step.kernel_samples;
  CHECK(in_line == expected);
  const auto threads = thread_usage(ramp.t.store.snapshot(), selection, budget).value();
  CHECK(threads.total_samples == expected);
  CHECK(threads.quality.whole == expected);
  const Heatmap map = heatmap(ramp.t.store.snapshot(), selection, 20, budget).value();
  CHECK(map.total_samples == expected);
  for (std::size_t row = 0; row < 20; ++row) CHECK((map.counts[9 * 20 + row] != 0) == (row >= 2 && row <= 4));
  TestNamer namer;
  CHECK(build_profile(ramp.t.store.snapshot(), selection, namer).nodes.front().total_samples == expected);
  selection.part = SecondPart{100 * kNsPerMs, 100 * kNsPerMs + 1};
  CHECK(thread_usage(ramp.t.store.snapshot(), selection, budget).value().total_samples == 120);
}

TEST_CASE("single samples are kept of recent time only, and time without samples misses none") {
  const Ramp exact;
  CHECK(keeps_single_samples(exact.t.store.snapshot(), exact.t.everything()));
  CHECK(keeps_single_samples(exact.t.store.snapshot(), {{0}, {kNsPerSecond}}));
  const Ramp counted({60 * kNsPerMinute, 8U << 20, 0});
  CHECK_FALSE(keeps_single_samples(counted.t.store.snapshot(), counted.t.everything()));
}

TEST_CASE("a timeline marks minutes with lost samples and times without data") {
  TestStore t;
  t.add({code(16)});
  t.pass(70);
  t.store.add_lost(Loss::kRingFull, 7, t.clock.monotonic());
  t.pass(50);
  t.clock.step_wall_ns(600 * kNsPerSecond);  // as after a sleep
  t.pass(60);
  const Timeline line = timeline_of(t, {t.everything()}, kNsPerMinute);
  REQUIRE(line.lost.size() == 1);
  CHECK(line.lost[0].samples == 7);
  CHECK(line.lost[0].window.from == after_noon(kNsPerMinute));
  REQUIRE(line.gaps.size() == 1);
  CHECK(line.gaps[0].from.ns >= after_noon(120 * kNsPerSecond).ns);
  CHECK(line.gaps[0].from.ns < after_noon(122 * kNsPerSecond).ns);
  CHECK(line.gaps[0].to.ns - line.gaps[0].from.ns >= 599 * kNsPerSecond);
}

TEST_CASE("threads are listed with the largest CPU time first, one row each whatever their names were") {
  TestStore t;
  const std::vector<Frame> frames{code(16)};
  const auto add = [&](std::int32_t pid, std::int32_t tid, const char* comm, int count) {
    for (int i = 0; i < count; ++i) t.store.add({t.clock.monotonic(), {pid, 1}, tid, comm, frames, {}});
  };
  add(1, 1, "main", 5);
  add(1, 2, "young", 3);
  add(1, 2, "old", 4);
  add(2, 2, "other", 1);
  QueryBudget budget;
  const auto table = thread_usage(t.store.snapshot(), {t.everything()}, budget).value();
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].tid == 2);
  CHECK(table.rows[0].comm == "old");
  CHECK(table.rows[0].samples == 7);
  CHECK(table.rows[0].cpu_ns == 7 * kPeriodNs);
  CHECK(table.rows[1].comm == "main");
  CHECK(table.rows[2].process.id.pid == 2);
  CHECK(table.total_samples == 13);
  CHECK(table.quality.whole == 13);
  Selection selection{t.everything()};
  selection.processes = {{1, {}}};
  CHECK(thread_usage(t.store.snapshot(), selection, budget).value().total_samples == 12);
  const auto processes = process_usage(t.store.snapshot(), selection, budget).value();
  REQUIRE(processes.rows.size() == 1);
  CHECK(processes.total_ns == 12 * kPeriodNs);
  CHECK(processes.used.from == kNoon);
}

TEST_CASE("if the period changed, every answer counts in units of the shortest one") {
  TestStore t;
  t.add({code(16)});
  t.pass(10);
  t.store.set_period_ns(4 * kPeriodNs, t.clock.monotonic());
  t.add({code(32)}, {2, 1});
  t.pass(10);
  const Snapshot snapshot = t.store.snapshot();
  QueryBudget budget;
  for (const std::int64_t step_ns : {kNsPerSecond, kNsPerMinute}) {
    const Timeline line = timeline(snapshot, {t.everything()}, step_ns, 10, budget).value();
    std::uint64_t samples = 0;
    std::uint64_t ns = 0;
    for (const TimelineStep& step : line.steps) {
      samples += step.user_samples;
      ns += step.user_ns;
    }
    CHECK(samples == 5);
    CHECK(ns == 5 * kPeriodNs);
    CHECK(line.period_ns == kPeriodNs);
  }
  const Heatmap map = heatmap(snapshot, {t.everything()}, 10, budget).value();
  CHECK(map.total_samples == 5);
  CHECK(map.most == 4);
  CHECK(map.quality.stored() == 5);
  TestNamer namer;
  const TimedSamples timed = timed_samples(snapshot, {t.everything()}, {}, namer, budget).value();
  REQUIRE(timed.samples.size() == 2);
  CHECK(timed.samples[0].period_ns == kPeriodNs);
  CHECK(timed.samples[1].period_ns == 4 * kPeriodNs);
  CHECK(timed.stacks.quality.stored() == 5);
  // A window of a single period counts the samples as taken.
  const Profile later = t.profile_of({{t.clock.wall().ns - 11 * kNsPerSecond}, t.clock.wall()}, ProcessSelector{2, {}});
  CHECK(later.cpu_ns(later.nodes.front().total_samples) == 4 * kPeriodNs);
}

}  // namespace flamed::store::test
