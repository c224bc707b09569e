// SPDX-License-Identifier: Apache-2.0
#include "store/query/process_series.h"

#include <numeric>
#include <vector>

#include "store/query/timeline.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

WallTime after_noon(std::int64_t ns) { return {kNoon.ns + ns}; }

/// Two and a half minutes with a sample of process 1 in each second, and one of process 2 in every tenth.
struct Host {
  explicit Host(Limits limits = {}) : t(limits) {
    for (int second = 0; second < 150; ++second) {
      t.add({code(16)}, {1, 1});
      if (second % 10 == 0) t.add({code(16), {kKernelModule, 1}}, {2, 1});
      t.pass(1);
    }
  }
  [[nodiscard]] ProcessSeries series(const WallWindow& window, std::int64_t step_ns) const {
    const auto group_of = [](const ProcessId& id) {
      return id.pid <= 2 ? std::optional(static_cast<std::size_t>(id.pid - 1)) : std::nullopt;
    };
    QueryBudget budget;
    return process_series(t.store.snapshot(), Selection{window}, step_ns, 2, group_of, budget).value();
  }
  TestStore t;
};

std::vector<std::uint64_t> samples_of(const std::vector<std::uint64_t>& ns) {
  std::vector<std::uint64_t> samples;
  for (const std::uint64_t value : ns) samples.push_back(value / kPeriodNs);
  return samples;
}

std::uint64_t sum(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

}  // namespace

TEST_CASE("steps of a series begin at the window's start, and the last is as long as is left") {
  const Host host;
  const ProcessSeries series =
      host.series({after_noon(5 * kNsPerSecond), after_noon(52 * kNsPerSecond)}, 20 * kNsPerSecond);
  CHECK(series.exact());
  CHECK(series.steps.start == after_noon(5 * kNsPerSecond));
  REQUIRE(series.ns.size() == 2);
  CHECK(samples_of(series.ns[0]) == std::vector<std::uint64_t>{20, 20, 7});
  CHECK(samples_of(series.ns[1]) == std::vector<std::uint64_t>{2, 2, 1});
  CHECK(series.quality.stored() == 52);
}

TEST_CASE("a series has the samples of a timeline of the same window, in each step") {
  const Host host;
  const WallWindow window{after_noon(0), after_noon(150 * kNsPerSecond)};
  const ProcessSeries series = host.series(window, 30 * kNsPerSecond);
  QueryBudget budget;
  const Timeline line = timeline(host.t.store.snapshot(), Selection{window}, 30 * kNsPerSecond, 0, budget).value();
  REQUIRE(series.ns[0].size() == line.steps.size());
  for (std::size_t step = 0; step < line.steps.size(); ++step) {
    CHECK(series.ns[0][step] + series.ns[1][step] == line.steps[step].user_ns + line.steps[step].kernel_ns);
  }
}

TEST_CASE("a minute that is kept only as counts is in one step, and none is invented beside it") {
  const Host host({60 * kNsPerMinute, 8U << 20, 0});
  const ProcessSeries series = host.series({after_noon(0), after_noon(120 * kNsPerSecond)}, 15 * kNsPerSecond);
  CHECK_FALSE(series.exact());
  CHECK(samples_of(series.ns[0]) == std::vector<std::uint64_t>{0, 0, 0, 60, 0, 0, 0, 60});
  CHECK(samples_of(series.ns[1]) == std::vector<std::uint64_t>{0, 0, 0, 6, 0, 0, 0, 6});
}

TEST_CASE("a series of nothing has no samples") {
  const Host host;
  const ProcessSeries empty = host.series({after_noon(5), after_noon(5)}, kNsPerSecond);
  CHECK(empty.steps.count == 0);
  CHECK(sum(empty.ns[0]) == 0);
  const ProcessSeries before = host.series({{0}, {kNsPerMinute}}, kNsPerSecond);
  CHECK(before.steps.count == 60);
  CHECK(sum(before.ns[0]) == 0);
}

TEST_CASE("processes without a group are left out, and each is asked for once") {
  TestStore t;
  for (std::int32_t pid = 1; pid <= 3; ++pid) {
    t.add({code(16)}, {pid, 1});
    t.add({code(32)}, {pid, 1});
  }
  t.pass_minutes(2);
  int calls = 0;
  const auto group_of = [&](const ProcessId& id) {
    ++calls;
    return id.pid == 2 ? std::optional<std::size_t>(0) : std::nullopt;
  };
  QueryBudget budget;
  const auto series = process_series(t.store.snapshot(), Selection{{after_noon(0), after_noon(kNsPerMinute)}},
                                     kNsPerMinute, 1, group_of, budget);
  CHECK(samples_of(series.value().ns[0]) == std::vector<std::uint64_t>{2});
  CHECK(calls == 3);
}

TEST_CASE("a series of more points than a query may have is refused") {
  const Host host;
  QueryBudget budget({.nodes = 1000}, nullptr);
  const Selection selection{{after_noon(0), after_noon(150 * kNsPerSecond)}};
  CHECK_FALSE(process_series(host.t.store.snapshot(), selection, kNsPerSecond / 10, 1, {}, budget).ok());
}

}  // namespace flamed::store::test
