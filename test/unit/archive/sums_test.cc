// SPDX-License-Identifier: Apache-2.0
#include "archive/numbering/sums.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "archive/codec/stretch.h"
#include "archive/numbering/numbering.h"
#include "store/ring/snapshot_data.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::archive {
namespace {

using store::Truncation;
using store::test::code;
using store::test::kProcess;
using store::test::TestStore;

constexpr std::uint32_t kAlice = 1000;
constexpr std::uint32_t kBob = 1001;
constexpr Frame kInKernel{kKernelModule, 0xffffffff81000010};

void add(TestStore& test, std::vector<Frame> frames, std::uint32_t owner, std::optional<Truncation> truncation = {},
         ProcessId process = kProcess) {
  store::StackSample sample{test.clock.monotonic(), process, process.pid, "worker", frames, truncation};
  sample.owner = owner;
  test.store.add(sample);
}

/// Sums what a store seals, as the daemon does, and reads the sums' dictionary.
struct Recording {
  void take(const store::Store& from) {
    const store::Snapshot snapshot = from.snapshot();
    for (const store::SealedSlot& sealed : *snapshot.data().sealed) {
      if (sealed.slot->sequence <= last) continue;
      last = sealed.slot->sequence;
      const Numbering::Numbered numbered = numbering.take(snapshot, *sealed.slot);
      if (!sums.takes(numbered.minute)) finish();
      sums.add(snapshot, *sealed.slot, numbered.minute, numbered.additions.gaps);
    }
  }
  void finish() {
    std::optional<Sum> sum = sums.finish();
    REQUIRE(sum);
    // Bytes of it can be read.
    REQUIRE(decode_additions(encode(sum->additions).value(), size).ok());
    size = sum->additions.after();
    REQUIRE(decode_minute(encode(sum->minute).value(), size).ok());
    for (const ProcessState& state : sum->additions.processes) {
      if (state.number == processes.size()) processes.emplace_back();
      processes[state.number] = state.info;
    }
    threads.insert(threads.end(), sum->additions.threads.begin(), sum->additions.threads.end());
    finished.push_back(std::move(*sum));
  }

  /// Samples by pid and owner.
  [[nodiscard]] std::map<std::pair<int, std::uint32_t>, std::uint64_t> samples(const Sum& sum) const {
    std::map<std::pair<int, std::uint32_t>, std::uint64_t> samples;
    for (const Pair& pair : sum.minute.pairs) {
      const ThreadAddition& thread = threads[pair.thread];
      samples[{processes[thread.process].id.pid, thread.owner}] += pair.count;
    }
    return samples;
  }

  Numbering numbering{[](ModuleId) { return Module{}; }};
  Sums sums;
  std::uint32_t last = 0;
  std::vector<Sum> finished;
  DictionarySize size;
  std::vector<store::ProcessInfo> processes;
  std::vector<ThreadAddition> threads;
};

}  // namespace

TEST_CASE("a sum has the samples of ten minutes by process and owner, and whatever else the minutes count") {
  TestStore test;
  Recording recording;
  for (int minute = 0; minute < 10; ++minute) {
    add(test, {code(0x10), code(0x100 + 16 * static_cast<std::uint64_t>(minute))}, kAlice);
    add(test, {code(0x20), kInKernel}, kBob, Truncation::kDepthLimit);
    add(test, {code(0x30)}, kBob, {}, {200, 1});
    test.store.add_lost(store::Loss::kRingFull, 2, test.clock.monotonic());
    test.pass_minutes(1);
    recording.take(test.store);
  }
  test.pass_minutes(1);
  recording.take(test.store);
  recording.finish();
  REQUIRE(!recording.finished.empty());
  const Sum& sum = recording.finished.front();
  CHECK(recording.samples(sum) == std::map<std::pair<int, std::uint32_t>, std::uint64_t>{
                                      {{100, kAlice}, 10}, {{100, kBob}, 10}, {{200, kBob}, 10}});
  CHECK(sum.minute.wall_start() == store::test::kNoon);
  CHECK(sum.minute.wall_end().ns == store::test::kNoon.ns + kStretchNs);
  CHECK(sum.minute.sequence - sum.first == 9);
  CHECK(sum.minute.quality.whole == 20);
  CHECK(store::test::count_of(sum.minute.quality, Truncation::kDepthLimit) == 10);
  CHECK(store::test::count_of(sum.minute.quality, store::Loss::kRingFull) == 20);
  // Two sides, one of them truncated: not one for each stack.
  CHECK(sum.additions.after().stacks <= 5);
  CHECK_FALSE(sum.short_processes);
}

TEST_CASE("a sum ends with its ten minutes, with its period, and at a gap") {
  TestStore test;
  Recording recording;
  const auto pass = [&](int minutes) {
    for (int minute = 0; minute < minutes; ++minute) {
      add(test, {code(0x10)}, kAlice);
      test.pass_minutes(1);
      recording.take(test.store);
    }
  };
  std::string expected;
  SECTION("ten minutes") {
    pass(25);
    expected = "10 10 5";
  }
  SECTION("a clock that was set") {
    pass(3);
    test.clock.step_wall_ns(2 * kNsPerMinute);
    pass(3);
    expected = "4 2";  // the minute that was open keeps its clock
  }
  test.store.finish(test.clock.monotonic());
  recording.take(test.store);
  recording.finish();
  std::string counts;
  for (const Sum& sum : recording.finished) {
    std::uint64_t samples = 0;
    for (const Pair& pair : sum.minute.pairs) samples += pair.count;
    if (samples != 0) counts += (counts.empty() ? "" : " ") + std::to_string(samples);
  }
  CHECK(counts == expected);
}

TEST_CASE("short-lived processes of one program are together in a sum, and each for itself beside it") {
  TestStore test;
  Recording recording;
  const auto run = [&](std::int32_t pid, std::uint32_t owner, const std::string& program) {
    store::ProcessInfo info;
    info.id = {pid, static_cast<std::uint64_t>(pid)};
    info.comm = program;
    info.executable = "/usr/bin/" + program;
    info.command_line = program + " " + std::to_string(pid);
    test.store.update_process(info);
    add(test, {code(0x10)}, owner, {}, info.id);
    test.clock.advance_ns(kNsPerSecond);
    test.store.end_process(info.id, test.clock.wall());
  };
  for (std::int32_t pid = 1000; pid < 1010; ++pid) run(pid, pid < 1006 ? kAlice : kBob, "cc1");
  for (int i = 0; i < 200; ++i) add(test, {code(0x10)}, kAlice);
  test.pass_minutes(2);
  recording.take(test.store);
  recording.finish();
  const Sum& sum = recording.finished.front();
  CHECK(recording.samples(sum) ==
        std::map<std::pair<int, std::uint32_t>, std::uint64_t>{{{0, kAlice}, 6}, {{0, kBob}, 4}, {{100, kAlice}, 200}});
  for (const store::ProcessInfo& info : recording.processes) {
    CHECK(is_several(info.id) == (info.id != kProcess));
    if (is_several(info.id)) CHECK(info.executable == "/usr/bin/cc1");
  }
  REQUIRE(sum.short_processes);
  CHECK(sum.short_processes->additions.processes.size() == 10);
  CHECK(sum.short_processes->additions.processes.front().info.command_line == "cc1 1000");
  CHECK(sum.short_processes->minute.pairs.size() == 10);
}

}  // namespace flamed::archive
