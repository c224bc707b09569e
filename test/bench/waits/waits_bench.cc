// SPDX-License-Identifier: Apache-2.0
//
// What visits of threads cost: a round over all threads of this machine without pauses, and then at the daemon's pace.
// One JSON object on stdout. Needs root.
//
//   waits_bench [sleeping threads] [active threads] [seconds]      (default 20000, 0, 30)
//
// Sleeping threads never wake. Active ones sleep a millisecond again and again, so that each visit finds a new wait.
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/thread_cpu.h"
#include "daemon/waits/visit_pace.h"
#include "daemon/waits/wait_program.h"

namespace flamed::test {
namespace {

using daemon::VisitPace;
using daemon::WaitProgram;

std::atomic<bool> is_over = false;

void* sleep_on(void* /*unused*/) {
  while (!is_over) std::this_thread::sleep_for(std::chrono::hours(1));
  return nullptr;
}

void* keep_waking(void* /*unused*/) {
  while (!is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return nullptr;
}

/// They end with the process.
void start_threads(int count, void* (*function)(void*)) {
  pthread_attr_t attributes{};
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, std::max(static_cast<std::size_t>(PTHREAD_STACK_MIN), std::size_t{32768}));
  for (int i = 0; i < count; ++i) {
    pthread_t thread{};
    if (::pthread_create(&thread, &attributes, function, nullptr) != 0) throw std::runtime_error("starting a thread");
    ::pthread_detach(thread);
  }
}

/// The records are read and dropped.
void drain(WaitProgram& program) {
  program.records().look();
  program.records().drain([](std::span<const std::byte>) {});
}

nlohmann::json whole_round(WaitProgram& program) {
  const flamed_visit_counts before = program.counts();
  std::int64_t cpu_ns = 0;
  for (;;) {
    const std::int64_t began_ns = read_cpu_clock(CLOCK_THREAD_CPUTIME_ID);
    const auto turn = program.turn({.longest_ns = kNsPerSecond, .old_stacks = 64});
    cpu_ns += read_cpu_clock(CLOCK_THREAD_CPUTIME_ID) - began_ns;
    if (!turn) throw std::runtime_error(turn.error().message());
    drain(program);
    if (*turn == WaitProgram::Turn::kEnded) break;
  }
  const flamed_visit_counts after = program.counts();
  const auto visited = after.visited - before.visited;
  return {{"threads", visited},
          {"unchanged", after.unchanged - before.unchanged},
          {"recorded", after.recorded - before.recorded},
          {"moved", after.moved - before.moved},
          {"left_out", after.left_out - before.left_out},
          {"cpu_us", cpu_ns / 1000},
          {"ns_per_thread", visited == 0 ? 0 : static_cast<std::uint64_t>(cpu_ns) / visited}};
}

nlohmann::json at_pace(WaitProgram& program, int seconds) {
  const SystemClock clock;
  VisitPace pace({}, clock.monotonic());
  const MonotonicTime begin = clock.monotonic();
  const std::int64_t cpu_before_ns = read_cpu_clock(CLOCK_THREAD_CPUTIME_ID);
  const flamed_visit_counts before = program.counts();
  std::int64_t cpu_ns = cpu_before_ns;
  int turns = 0;
  int rounds = 0;
  while (clock.monotonic().ns - begin.ns < seconds * kNsPerSecond) {
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(std::max<std::int64_t>(pace.next().ns - clock.monotonic().ns, 0)));
    const MonotonicTime now = clock.monotonic();
    const auto turn = program.turn({.longest_ns = pace.turn_ns(now), .old_stacks = 64});
    if (!turn) throw std::runtime_error(turn.error().message());
    rounds += *turn == WaitProgram::Turn::kEnded ? 1 : 0;
    ++turns;
    drain(program);
    const std::int64_t cpu_before_turn_ns = cpu_ns;
    cpu_ns = read_cpu_clock(CLOCK_THREAD_CPUTIME_ID);
    pace.ended(clock.monotonic(), cpu_ns - cpu_before_turn_ns);
  }
  const flamed_visit_counts after = program.counts();
  const auto took_ns = static_cast<double>(clock.monotonic().ns - begin.ns);
  return {{"turns", turns},
          {"rounds", rounds},
          {"visited", after.visited - before.visited},
          {"recorded", after.recorded - before.recorded},
          {"percent_of_a_core", 100 * static_cast<double>(cpu_ns - cpu_before_ns) / took_ns}};
}

int measure(int sleeping, int active, int seconds) {
  start_threads(sleeping, sleep_on);
  start_threads(active, keep_waking);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  Result<WaitProgram> program = WaitProgram::load();
  if (!program) throw std::runtime_error(program.error().message());
  nlohmann::json figures;
  figures["first_round"] = whole_round(*program);
  for (int i = 0; i < 5; ++i) figures["rounds"].push_back(whole_round(*program));
  figures["at_pace"] = at_pace(*program, seconds);
  std::printf("%s\n", figures.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace flamed::test

int main(int argc, char** argv) {
  const auto argument = [&](int index, int otherwise) { return argc > index ? std::atoi(argv[index]) : otherwise; };
  try {
    return flamed::test::measure(argument(1, 20'000), argument(2, 0), argument(3, 30));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "waits_bench: %s\n", error.what());
    return 1;
  }
}
