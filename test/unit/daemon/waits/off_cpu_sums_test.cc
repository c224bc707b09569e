// SPDX-License-Identifier: Apache-2.0
//
// The exact mode of waiting: which stacks are taken (bpf/off_cpu.h), and the times that they stand for.
#include "daemon/waits/off_cpu_sums.h"

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

constexpr std::uint32_t kTid = 5;
constexpr std::uint32_t kTgid = 4;
constexpr std::int32_t kCall = 35;

std::int64_t blocked_ns(const std::vector<OffCpuTime>& times) {
  std::int64_t sum = 0;
  for (const OffCpuTime& time : times) sum += time.blocked_ns;
  return sum;
}

TEST_CASE("a wait whose stack is always taken stands for its own time") {
  const std::vector<OffCpuTotal> totals{{kTid, kTgid, kCall, 100, 7}};
  const std::vector<OffCpuWait> waits{{kTid, 1, kCall, 30, 7}, {kTid, 2, kCall, 70, 0}};
  const std::vector<OffCpuTime> times = divide_times(totals, waits);
  REQUIRE(times.size() == 2);
  CHECK(times[0].number == 1);
  CHECK(times[0].tgid == kTgid);
  CHECK(times[0].blocked_ns == 30);
  CHECK(times[0].queued_ns == 7);
  CHECK(times[1].blocked_ns == 70);
  CHECK(times[1].queued_ns == 0);
}

TEST_CASE("a wait that is taken by a chance of a quarter stands for four, within the exact total of its place") {
  const std::vector<OffCpuTotal> totals{{kTid, kTgid, kCall, 1000, 0}};
  const std::vector<OffCpuWait> waits{{kTid, 1, kCall, 100, 0, FLAMED_SURE / 4}, {kTid, 2, kCall, 100, 0}};
  const std::vector<OffCpuTime> times = divide_times(totals, waits);
  REQUIRE(times.size() == 2);
  CHECK(times[0].blocked_ns == 800);
  CHECK(times[1].blocked_ns == 200);
}

TEST_CASE("the time of a place without any stack is told without one") {
  const std::vector<OffCpuTotal> totals{{kTid, kTgid, kCall, 1000, 0}, {kTid, kTgid, FLAMED_PREEMPTED, 0, 500}};
  const std::vector<OffCpuWait> waits{{kTid, 1, FLAMED_PREEMPTED, 0, 5}};
  const std::vector<OffCpuTime> times = divide_times(totals, waits);
  REQUIRE(times.size() == 2);
  CHECK(times[0].number == 1);
  CHECK(times[0].queued_ns == 500);
  CHECK(times[1].number == 0);
  CHECK(times[1].blocked_ns == 1000);
}

TEST_CASE("totals of one place that come in parts are one total, and waits of no known place are left out") {
  const std::vector<OffCpuTotal> totals{{kTid, kTgid, kCall, 60, 0}, {kTid, kTgid, kCall, 40, 0}};
  const std::vector<OffCpuWait> waits{{kTid, 1, kCall, 10, 0}, {kTid + 1, 1, kCall, 10, 0}, {kTid, 2, kCall, 10, 0, 0}};
  const std::vector<OffCpuTime> times = divide_times(totals, waits);
  REQUIRE(times.size() == 1);
  CHECK(times[0].blocked_ns == 100);
}

TEST_CASE("each system call has a place, and those beyond the table share the last one") {
  flamed_off_cpu_thread thread{};
  for (std::int32_t call = 0; call < FLAMED_OFF_CPU_PLACES - 1; ++call) {
    const std::uint32_t place = ::find_place(&thread, call);
    CHECK(place == static_cast<std::uint32_t>(call));
    ::add_wait(&thread.places[place], 1, 0);
  }
  CHECK(::find_place(&thread, 3) == 3);
  CHECK(::find_place(&thread, 100) == FLAMED_OFF_CPU_PLACES - 1);
  CHECK(::find_place(&thread, 101) == FLAMED_OFF_CPU_PLACES - 1);
  CHECK(thread.places[FLAMED_OFF_CPU_PLACES - 1].call == FLAMED_OTHER_CALLS);
}

TEST_CASE("the first wait of a place and waits of at least the period are always taken, shorter ones by chance") {
  flamed_off_cpu_place place{};
  CHECK(::chance_of(&place, FLAMED_FIRST_PERIOD_NS) == FLAMED_SURE);
  ::add_wait(&place, FLAMED_FIRST_PERIOD_NS, 0);
  CHECK(::chance_of(&place, FLAMED_FIRST_PERIOD_NS) == FLAMED_SURE);
  CHECK(::chance_of(&place, 4 * FLAMED_FIRST_PERIOD_NS) == FLAMED_SURE / 4);
  for (int i = 0; i < 100; ++i) ::add_wait(&place, 1000, 0);
  CHECK(::chance_of(&place, FLAMED_FIRST_PERIOD_NS) == FLAMED_LEAST_CHANCE);
  CHECK(::chance_of(&place, 4 * FLAMED_FIRST_PERIOD_NS) == FLAMED_LEAST_CHANCE / 4);
  CHECK(::chance_of(&place, std::uint64_t{1} << 40) == 1);
  // Longer ones are soon expected.
  for (int i = 0; i < 3; ++i) ::add_wait(&place, 2 * FLAMED_FIRST_PERIOD_NS, 0);
  CHECK(::chance_of(&place, FLAMED_FIRST_PERIOD_NS) == FLAMED_SURE);
}

/// Waits of one thread at one place, from two stacks, as the program would take them.
struct Simulated {
  std::map<char, std::int64_t> exact;
  std::map<char, std::int64_t> told;
  std::int64_t total = 0;
  std::size_t taken = 0;
};

Simulated simulate(std::uint32_t seed, std::int64_t a_ns, std::int64_t b_ns, std::int64_t until_ns) {
  std::mt19937 random(seed);
  flamed_off_cpu_thread thread{};
  std::vector<OffCpuWait> waits;
  std::string stacks;
  Simulated result;
  while (result.total < until_ns) {
    const char stack = random() % 2 == 0 ? 'a' : 'b';
    const std::int64_t mean_ns = stack == 'a' ? a_ns : b_ns;
    const std::int64_t ns = std::uniform_int_distribution<std::int64_t>(mean_ns / 2, mean_ns * 3 / 2)(random);
    flamed_off_cpu_place& place = thread.places[::find_place(&thread, kCall)];
    const std::uint32_t chance = ::chance_of(&place, FLAMED_FIRST_PERIOD_NS);
    if (chance == FLAMED_SURE || random() % FLAMED_SURE < chance) {
      stacks += stack;
      waits.push_back({kTid, stacks.size(), kCall, ns, 0, chance});
    }
    ::add_wait(&place, static_cast<std::uint64_t>(ns), 0);
    result.exact[stack] += ns;
    result.total += ns;
  }
  const std::vector<OffCpuTotal> totals{
      {kTid, kTgid, kCall, static_cast<std::int64_t>(thread.places[0].blocked_ns), 0}};
  const std::vector<OffCpuTime> times = divide_times(totals, waits);
  for (const OffCpuTime& time : times) result.told[stacks[time.number - 1]] += time.blocked_ns;
  CHECK(std::abs(blocked_ns(times) - result.total) <= static_cast<std::int64_t>(times.size()));
  result.taken = waits.size();
  return result;
}

TEST_CASE("waits longer than the period are told as they were") {
  const Simulated result = simulate(1, 30 * kNsPerMs, 70 * kNsPerMs, 10 * kNsPerSecond);
  CHECK(std::abs(result.told.at('a') - result.exact.at('a')) < kNsPerMs);
}

TEST_CASE("short waits of two stacks at one place are told in proportion to their time, by one stack for each period") {
  // 3 and 7 of 10: the longer ones are half of all waits, and most of the time.
  double share = 0;
  constexpr int kRuns = 20;
  for (std::uint32_t seed = 1; seed <= kRuns; ++seed) {
    const Simulated result = simulate(seed, 300 * kNsPerUs, 700 * kNsPerUs, 10 * kNsPerSecond);
    share += static_cast<double>(result.told.at('b')) / static_cast<double>(result.total) / kRuns;
    // 1,000 periods.
    CHECK(result.taken > 800);
    CHECK(result.taken < 1200);
  }
  CHECK(share > 0.68);
  CHECK(share < 0.72);
}

}  // namespace
}  // namespace flamed::daemon
