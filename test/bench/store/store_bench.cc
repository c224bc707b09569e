// SPDX-License-Identifier: Apache-2.0
//
// The cost of the store, as one JSON object on stdout: the writer's time and allocations per sample, bytes per stack
// and per minute, and the time of queries. The host is the one of synthetic_host.h.
//
//   store_bench [minutes]          (default 1440: a day)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/query/query.h"
#include "store/ring/store.h"
#include "test/bench/store/synthetic_host.h"
#include "test/support/manual_clock.h"

namespace {
// One thread: no need for atomics.
std::uint64_t allocations = 0;
}  // namespace

// GCC 16 takes one of them for another allocator's if only the other one is inlined.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace flamed::store {
namespace {

constexpr int kSamplesPerMinute = SyntheticHost::kSamplesPerSecond * 60;
constexpr WallTime kNoon{1'767'268'800 * kNsPerSecond};

/// CPU time of this thread, so that the figures hold on a busy machine too.
double now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

class Namer final : public FrameNamer {
 public:
  std::vector<std::shared_ptr<const InlineChain>> name(std::span<const Frame> frames) override {
    double start = now_ns();
    std::vector<std::shared_ptr<const InlineChain>> chains;
    chains.reserve(frames.size());
    for (const Frame& frame : frames) {
      std::string name = "function_" + std::to_string(frame.module.value) + "_" + std::to_string(frame.offset >> 8);
      chains.push_back(std::make_shared<const InlineChain>(1, NamedFrame{name, "lib.so", FrameKind::kNative, ""}));
    }
    took_ns += now_ns() - start;
    return chains;
  }
  double took_ns = 0;  ///< not by the store
};

struct Figures {
  void add(const char* name, double value) {
    std::printf("%s  \"%s\": %.*f", first ? "{\n" : ",\n", name, value < 100 && value != std::floor(value) ? 2 : 0,
                value);
    first = false;
  }
  ~Figures() { std::printf("\n}\n"); }
  bool first = true;
};

std::vector<Frame> deep_stack(std::uint64_t leaf) {
  std::vector<Frame> frames;
  for (std::uint64_t i = 0; i < 29; ++i) frames.push_back({ModuleId{16}, 0x1000 + i * 64 + (leaf % 200) * 0x10000});
  frames.push_back({ModuleId{16}, 0x100000000ULL + leaf});
  return frames;
}

void measure_add(Figures& figures) {
  constexpr std::size_t kStacks = 2000;
  ManualClock clock({1000 * kNsPerSecond}, kNoon);
  Store store({}, clock, kPeriodNs);
  std::vector<std::vector<Frame>> stacks;
  for (std::size_t i = 0; i < kStacks; ++i) stacks.push_back(deep_stack(i));
  auto add_all = [&] {
    for (const auto& frames : stacks) store.add({clock.monotonic(), {100, 1}, 100, "bench", frames, {}});
  };
  std::size_t bytes_before = store.stats().used_bytes;
  add_all();
  figures.add("bytes_per_distinct_30_frame_stack",
              static_cast<double>(store.stats().used_bytes - bytes_before) / static_cast<double>(kStacks));
  std::uint64_t allocations_before = allocations;
  double start = now_ns();
  constexpr int kRounds = 500;
  for (int i = 0; i < kRounds; ++i) add_all();
  figures.add("add_repeated_30_frames_ns", (now_ns() - start) / static_cast<double>(kRounds * kStacks));
  figures.add("allocations_per_repeated_add",
              static_cast<double>(allocations - allocations_before) / static_cast<double>(kRounds * kStacks));

  std::vector<Frame> frames = deep_stack(1);
  constexpr std::uint64_t kNew = 300'000;
  start = now_ns();
  for (std::uint64_t i = 0; i < kNew; ++i) {
    frames[28].offset = i;
    frames[29].offset = i * 7;
    store.add({clock.monotonic(), {100, 1}, 100, "bench", frames, {}});
  }
  figures.add("add_new_2_of_30_frames_ns", (now_ns() - start) / static_cast<double>(kNew));
}

/// One user has new deep stacks all the time on eight CPUs, and another has 2,000 stacks on one.
void measure_flood(Figures& figures) {
  constexpr int kMinutes = 8;
  constexpr int kFlooding = 8 * 99;
  constexpr std::size_t kDepth = 100;
  constexpr std::uint64_t kStacks = 2000;
  ManualClock clock({1000 * kNsPerSecond}, kNoon);
  Store store({24 * 60 * kNsPerMinute, 256U << 20}, clock, kPeriodNs);
  std::mt19937_64 random(1);
  std::vector<std::vector<Frame>> drain(kFlooding + 99);
  double in_store_ns = 0;
  double slowest_add_ns = 0;
  double slowest_advance_ns = 0;
  for (int second = 0; second < kMinutes * 60; ++second) {
    for (std::size_t i = 0; i < drain.size(); ++i) {
      drain[i] = i >= kFlooding ? deep_stack(random() % kStacks) : std::vector<Frame>();
      while (drain[i].size() < (i < kFlooding ? kDepth : 0)) drain[i].push_back({ModuleId{17}, random() % 1000});
    }
    const MonotonicTime time = clock.monotonic();
    for (std::size_t i = 0; i < drain.size(); ++i) {
      const bool floods = i < kFlooding;
      const double start = now_ns();
      store.add({time, {floods ? 100 : 200, 1}, floods ? 100 : 200, "bench", drain[i], {}, 0, floods ? 1000U : 1001U});
      const double took = now_ns() - start;
      in_store_ns += took;
      slowest_add_ns = std::max(slowest_add_ns, took);
    }
    clock.advance_ns(kNsPerSecond);
    const double start = now_ns();
    store.advance(clock.monotonic());
    const double took = now_ns() - start;
    in_store_ns += took;
    slowest_advance_ns = std::max(slowest_advance_ns, took);
  }
  Namer namer;
  Selection selection{{{0}, clock.wall()}};
  selection.processes.push_back({200, {}});
  figures.add("flood_store_ns_per_sample", in_store_ns / (static_cast<double>(drain.size()) * kMinutes * 60));
  figures.add("flood_slowest_add_ms", slowest_add_ns / 1e6);
  figures.add("flood_slowest_advance_ms", slowest_advance_ns / 1e6);
  figures.add("flood_slots_dropped_for_budget", static_cast<double>(store.stats().slots_dropped_for_budget));
  figures.add("flood_other_users_whole_samples_percent",
              100 * static_cast<double>(build_profile(store.snapshot(), selection, namer).quality.whole) /
                  (99.0 * kMinutes * 60));
}

void measure_day(Figures& figures, int minutes) {
  ManualClock clock({1000 * kNsPerSecond}, kNoon);
  Store store({24 * 60 * kNsPerMinute, 256U << 20}, clock, kPeriodNs);
  SyntheticHost host;
  double in_store_ns = 0;
  double slowest_advance_ns = 0;
  for (int second = 0; second < minutes * 60; ++second) {
    host.run_second(clock.monotonic());
    clock.advance_ns(kNsPerSecond);
    double start = now_ns();
    host.store_second(store);
    double added = now_ns();
    store.advance(clock.monotonic());
    double advanced = now_ns();
    in_store_ns += advanced - start;
    slowest_advance_ns = std::max(slowest_advance_ns, advanced - added);
  }
  StoreStats stats = store.stats();
  figures.add("day_minutes", minutes);
  figures.add("day_store_ns_per_sample", in_store_ns / (static_cast<double>(minutes) * kSamplesPerMinute));
  figures.add("day_slowest_advance_us", slowest_advance_ns / 1e3);
  figures.add("day_used_bytes", static_cast<double>(stats.used_bytes));
  figures.add("day_exact_bytes", static_cast<double>(stats.exact_bytes));
  figures.add("day_exact_minutes", static_cast<double>(stats.exact_samples) / kSamplesPerMinute);
  figures.add("day_slots", static_cast<double>(stats.slots));
  figures.add("day_slots_dropped_for_budget", static_cast<double>(stats.slots_dropped_for_budget));
  figures.add("day_nodes", static_cast<double>(stats.nodes));
  figures.add("day_frames", static_cast<double>(stats.frames));
  figures.add("day_threads", static_cast<double>(stats.threads));
  figures.add("day_processes", static_cast<double>(stats.processes));
  figures.add("day_entries_per_minute",
              static_cast<double>(stats.histogram_entries) / static_cast<double>(stats.slots));
  figures.add("day_sealed_bytes", static_cast<double>(stats.sealed_bytes));
  figures.add("bytes_per_histogram_entry",
              static_cast<double>(stats.sealed_bytes) / static_cast<double>(stats.histogram_entries));
  figures.add("sealed_bytes_per_minute", static_cast<double>(stats.sealed_bytes) / static_cast<double>(stats.slots));

  double start = now_ns();
  constexpr int kSnapshots = 100;
  for (int i = 0; i < kSnapshots; ++i) static_cast<void>(store.snapshot());
  figures.add("snapshot_us", (now_ns() - start) / kSnapshots / 1e3);

  Snapshot snapshot = store.snapshot();
  Namer namer;
  auto query = [&](const char* name, int hours, std::optional<ProcessSelector> process) {
    WallTime to = clock.wall();
    namer.took_ns = 0;
    start = now_ns();
    Selection selection{{{to.ns - hours * 60 * kNsPerMinute}, to}};
    if (process) selection.processes.push_back(*process);
    Profile profile = build_profile(snapshot, selection, namer);
    figures.add(name, (now_ns() - start - namer.took_ns) / 1e6);
    return profile.nodes.size();
  };
  query("query_1h_machine_ms", 1, {});
  query("query_1h_process_ms", 1, ProcessSelector{500, {}});
  std::size_t nodes = query("query_24h_machine_ms", 24, {});
  figures.add("query_24h_machine_nodes", static_cast<double>(nodes));
  query("query_24h_process_ms", 24, ProcessSelector{500, {}});
  start = now_ns();
  static_cast<void>(process_usage(snapshot, {{0}, clock.wall()}));
  figures.add("process_usage_24h_ms", (now_ns() - start) / 1e6);
}

}  // namespace
}  // namespace flamed::store

int main(int argc, char** argv) {
  flamed::store::Figures figures;
  flamed::store::measure_add(figures);
  flamed::store::measure_flood(figures);
  flamed::store::measure_day(figures, argc > 1 ? std::max(std::atoi(argv[1]), 1) : 24 * 60);
  return 0;
}
