// SPDX-License-Identifier: Apache-2.0
#include "store/ring/slot_sums.h"

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

std::shared_ptr<const Histogram> sum_of(std::uint32_t stacks) {
  std::vector<HistogramEntry> entries;
  for (std::uint32_t i = 0; i < stacks; ++i) entries.push_back({1, i * 2, 1});
  return std::make_shared<const Histogram>(entries);
}

}  // namespace

TEST_CASE("in long windows, sums of minutes equal a count of all samples, for the machine and for one process") {
  TestStore t;
  std::mt19937_64 random(7);
  struct Added {
    std::int64_t ns;
    std::int32_t pid;
    std::uint64_t function;
    std::int64_t period_ns;
  };
  std::vector<Added> all;
  std::int64_t period_ns = kPeriodNs;
  const MonotonicTime start = t.clock.monotonic();
  for (int minute = 0; minute < 150; ++minute) {
    if (minute == 90) {
      period_ns = 2 * kPeriodNs;
      t.store.set_period_ns(period_ns, t.clock.monotonic());
      t.store.advance(t.clock.monotonic());
    }
    for (int i = 0; i < 20; ++i) {
      const std::int64_t ns = t.clock.monotonic().ns + static_cast<std::int64_t>(random() % kNsPerMinute);
      const auto pid = static_cast<std::int32_t>(1 + random() % 3);
      const std::uint64_t function = random() % 8;
      t.add_at({ns}, {code(0x100 * 16), code(function * 16)}, {pid, 1});
      all.push_back({ns - start.ns, pid, function, period_ns});
    }
    t.pass_minutes(1);
  }
  t.pass_minutes(1);
  for (int i = 0; i < 60; ++i) {
    auto from = static_cast<std::int64_t>(random() % (150 * kNsPerMinute));
    auto to = static_cast<std::int64_t>(random() % (150 * kNsPerMinute));
    if (to < from) std::swap(from, to);
    const std::int32_t pid = i % 3 == 2 ? 2 : 0;
    std::map<std::string, std::uint64_t> counted;
    std::uint64_t total_ns = 0;
    for (const Added& sample : all) {
      if (sample.ns < from || sample.ns >= to || (pid != 0 && sample.pid != pid)) continue;
      const std::string stack = "worker (" + std::to_string(sample.pid) + ");f256;f" + std::to_string(sample.function);
      // With samples of both periods in the window, those with the longer one count twice.
      const std::int64_t unit_ns = from < 90 * kNsPerMinute ? kPeriodNs : 2 * kPeriodNs;
      counted[pid != 0 ? stack : "all;" + stack] += static_cast<std::uint64_t>(sample.period_ns / unit_ns);
      total_ns += static_cast<std::uint64_t>(sample.period_ns);
    }
    std::vector<std::string> expected;
    for (const auto& [stack, count] : counted) expected.push_back(stack + " " + std::to_string(count));
    const std::optional<ProcessSelector> process = pid != 0 ? std::optional(ProcessSelector{pid, {}}) : std::nullopt;
    const Profile profile = t.profile_of({{kNoon.ns + from}, {kNoon.ns + to}}, process);
    CAPTURE(from, to, pid);
    if (counted.empty()) continue;
    CHECK(folded(profile) == expected);
    CHECK(profile.cpu_ns(profile.nodes.front().total_samples) == total_ns);
  }
}

TEST_CASE("a store's memory figure includes its sums, which stay within a small part of its budget") {
  TestStore t({24 * 60 * kNsPerMinute, 8U << 20});
  for (int minute = 0; minute < 80; ++minute) {
    for (std::uint64_t i = 0; i < 50; ++i) t.add({code(i * 16)});
    t.pass_minutes(1);
  }
  const std::size_t before = t.store.stats().used_bytes;
  static_cast<void>(t.profile());
  const std::size_t after = t.store.stats().used_bytes;
  CHECK(after > before);
  CHECK(after - before <= (8U << 20) / 32);
  static_cast<void>(t.profile());
  CHECK(t.store.stats().used_bytes == after);
}

TEST_CASE("the least recently used sums make room for new ones") {
  const auto sum = sum_of(1000);
  SlotSums sums(2 * (sum->byte_count() + 256));
  sums.keep({4, 4}, sum);
  sums.keep({8, 4}, sum);
  CHECK(sums.find({4, 4}) == sum);
  sums.keep({12, 4}, sum);
  CHECK(sums.find({4, 4}) == sum);
  CHECK(sums.find({8, 4}) == nullptr);
  CHECK(sums.find({12, 4}) == sum);
  CHECK(sums.find({12, 16}) == nullptr);
  sums.keep({64, 64}, sum_of(100'000));  // larger than the whole room
  CHECK(sums.find({64, 64}) == nullptr);
  CHECK(sums.find({12, 4}) == sum);
  CHECK(sums.used_bytes() == 2 * (sum->byte_count() + 256));
}

}  // namespace flamed::store::test
