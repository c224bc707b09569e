// SPDX-License-Identifier: Apache-2.0
#include "archive/numbering/numbering.h"

#include <map>
#include <random>
#include <string>
#include <utility>

#include "store/ring/snapshot_data.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::archive {
namespace {

using store::SnapshotData;
using store::test::code;
using store::test::kProcess;
using store::test::TestStore;

Module describe(ModuleId id) { return {ModuleKind::kFile, "module " + std::to_string(id.value), {}}; }

std::string text_of(const ProcessId& id) { return std::to_string(id.pid) + "@" + std::to_string(id.start_ticks); }

/// Samples by "process thread name owner stack".
using Meaning = std::map<std::string, std::uint64_t>;

/// What the additions of a session have defined so far.
class Dictionary {
 public:
  void add(const Additions& additions) {
    REQUIRE(additions.before == size);
    for (const Module& module : additions.modules) modules.push_back(module.path);
    for (const FrameAddition& frame : additions.frames) {
      const std::string module = frame.module < kFirstFreeModule.value ? "module " + std::to_string(frame.module)
                                                                       : modules[frame.module - kFirstFreeModule.value];
      frames.push_back(module + "+" + std::to_string(frame.offset));
    }
    for (const StackAddition& stack : additions.stacks) {
      stacks.push_back(stacks[stack.caller] + ";" + frames[stack.frame]);
    }
    for (const ProcessState& state : additions.processes) {
      if (state.number == processes.size()) processes.emplace_back();
      processes[state.number] = state;
      ++states;
    }
    for (const ThreadAddition& thread : additions.threads) threads.push_back(thread);
    size = additions.after();
  }

  Meaning meaning_of(const Minute& minute) const {
    Meaning meaning;
    for (const Pair& pair : minute.pairs) {
      const ThreadAddition& thread = threads[pair.thread];
      meaning[text_of(processes[thread.process].info.id) + " " + std::to_string(thread.tid) + " " + thread.comm + " " +
              std::to_string(thread.owner) + (thread.is_hidden ? "h" : "") + " " + stacks[pair.stack] +
              (pair.is_cut ? " cut" : "")] += pair.count;
    }
    return meaning;
  }

  DictionarySize size;
  std::vector<std::string> modules, frames, stacks{""};
  std::vector<ProcessState> processes;
  std::vector<ThreadAddition> threads;
  int states = 0;  ///< of processes, with repeats
};

std::string stack_of(const SnapshotData& data, store::StackId stack) {
  if (stack == store::kEmptyStack) return "";
  const store::CallNode& node = data.tree.nodes[stack.value];
  const Frame frame = data.tree.frames[node.frame.value];
  return stack_of(data, node.caller) + ";module " + std::to_string(frame.module.value) + "+" +
         std::to_string(frame.offset);
}

Meaning meaning_of(const SnapshotData& data, const store::Slot& slot) {
  Meaning meaning;
  slot.histogram.for_each_thread([&](std::uint32_t id, std::span<const std::uint8_t> bytes) {
    const store::ThreadRecord& thread = data.threads[id];
    const std::string begin = text_of(data.processes[thread.process].id) + " " + std::to_string(thread.tid) + " " +
                              std::string(store::text_of(thread.comm)) + " " + std::to_string(thread.owner) +
                              (thread.is_hidden != 0 ? "h" : "") + " ";
    store::Histogram::for_each_stack(bytes, [&](store::StackRef ref, std::uint64_t count) {
      meaning[begin + stack_of(data, ref.stack) + (ref.cut ? " cut" : "")] += count;
    });
  });
  return meaning;
}

/// Numbers what a store seals, and checks each minute against the store.
struct Recording {
  /// Returns the last slot's additions and minute.
  Numbering::Numbered take(const store::Store& from) {
    Numbering::Numbered last_taken;
    const store::Snapshot snapshot = from.snapshot();
    for (const store::SealedSlot& sealed : *snapshot.data().sealed) {
      if (sealed.slot->sequence <= last) continue;
      last = sealed.slot->sequence;
      last_taken = numbering.take(snapshot, *sealed.slot);
      dictionary.add(last_taken.additions);
      CHECK(dictionary.meaning_of(last_taken.minute) == meaning_of(snapshot.data(), *sealed.slot));
      taken[last] = last_taken.minute;
      ++minutes;
    }
    return last_taken;
  }

  Numbering numbering{describe};
  Dictionary dictionary;
  std::map<std::uint32_t, Minute> taken;  ///< by sequence
  std::uint32_t last = 0;
  int minutes = 0;
};

}  // namespace

TEST_CASE("a minute has the bounds, the period and the quality of its slot") {
  TestStore test;
  test.add({code(1)});
  test.add({code(1)}, kProcess, store::Truncation::kDepthLimit);
  test.store.add_lost(store::Loss::kRingFull, 5, test.clock.monotonic());
  test.pass_minutes(2);
  Recording recording;
  const store::Slot& slot = *test.store.snapshot().data().sealed->front().slot;
  const Minute minute = recording.take(test.store).minute;
  CHECK(recording.minutes == 1);
  CHECK(minute.start == slot.bounds.start);
  CHECK(minute.end == slot.bounds.end);
  CHECK(minute.wall_start() == slot.bounds.wall_start());
  CHECK(minute.period_ns == store::test::kPeriodNs);
  CHECK(minute.sequence == slot.sequence);
  CHECK(minute.quality.whole == 1);
  CHECK(minute.quality.taken() == 7);
}

TEST_CASE("only what is new is added to the dictionary") {
  TestStore test;
  Recording recording;
  test.add({code(1), code(2)});
  test.pass_minutes(2);
  CHECK(recording.take(test.store).additions.stacks.size() == 2);
  test.add({code(1), code(2)});
  test.add({code(1), code(3)});
  test.pass_minutes(2);
  recording.take(test.store);
  CHECK(recording.dictionary.size == DictionarySize{1, 3, 4, 1, 1});
  test.add({code(1), code(3)});
  test.pass_minutes(1);
  const Additions none = recording.take(test.store).additions;
  CHECK(none.after() == none.before);
  CHECK(none.processes.empty());
}

TEST_CASE("a process that changed is written again under its number") {
  TestStore test;
  Recording recording;
  store::ProcessInfo info{kProcess, "first", "/usr/bin/first", 7, test.clock.wall(), {}};
  test.store.update_process(info);
  test.add({code(1)});
  test.pass_minutes(2);
  recording.take(test.store);
  CHECK(recording.dictionary.processes[0].info.executable == "/usr/bin/first");
  CHECK_FALSE(recording.dictionary.processes[0].info.ended);
  test.store.end_process(kProcess, test.clock.wall());
  test.add({code(1)});
  test.pass_minutes(2);
  recording.take(test.store);
  REQUIRE(recording.dictionary.processes.size() == 1);
  CHECK(recording.dictionary.processes[0].info.ended);
  CHECK(recording.dictionary.states == 2);
}

TEST_CASE("single samples are known in terms of the minute's pairs, as long as memory has the minute as it was") {
  // Room for a few minutes, so that users lose stacks.
  TestStore test({.retention_ns = 60 * kNsPerMinute, .budget_bytes = 2U << 20});
  Recording recording;
  std::mt19937_64 random(1);
  std::size_t known = 0;
  std::size_t unknown = 0;
  for (int minute = 0; minute < 40; ++minute) {
    for (int sample = 0; sample < 300; ++sample) {
      std::vector<Frame> frames;
      for (std::size_t depth = 1 + random() % 12; depth > 0; --depth) frames.push_back(code(random() % 100'000));
      const std::vector<Frame> stack = frames;
      const auto tid = static_cast<std::int32_t>(100 + random() % 5);
      test.clock.advance_ns(kNsPerMs);
      test.store.add({test.clock.monotonic(),
                      kProcess,
                      tid,
                      "worker",
                      stack,
                      {},
                      static_cast<std::uint16_t>(tid % 3),
                      tid == 100 ? 1000U : 1001U});
    }
    test.pass_minutes(1);
    recording.take(test.store);
    const store::Snapshot snapshot = test.store.snapshot();
    for (const store::SealedSlot& sealed : *snapshot.data().sealed) {
      const auto samples = recording.numbering.samples_of(sealed);
      ++(samples ? known : unknown);
      if (!samples) continue;
      const std::vector<Pair>& pairs = recording.taken.at(sealed.slot->sequence).pairs;
      std::vector<std::uint32_t> counts(pairs.size());
      for (const Sample& sample : *samples) {
        const Pair& pair = pairs.at(sample.pair);
        ++counts[sample.pair];
        CHECK(recording.dictionary.threads[pair.thread].tid % 3 == sample.cpu);
      }
      for (std::size_t i = 0; i < pairs.size(); ++i) REQUIRE(counts[i] == pairs[i].count);
    }
  }
  CHECK(known > 40);
  CHECK(unknown > 10);
  CHECK(test.store.stats().stacks_given_up > 0);
}

TEST_CASE("the owner of a thread and of a process are in the dictionary, and whether they are hidden") {
  TestStore test;
  Recording recording;
  const std::vector<Frame> frames{code(1)};
  test.store.add({test.clock.monotonic(), kProcess, 100, "main", frames, {}, 0, 1000, false});
  test.store.add({test.clock.monotonic(), kProcess, 101, "other", frames, {}, 0, 1001, true});
  test.pass_minutes(2);
  recording.take(test.store);
  REQUIRE(recording.dictionary.threads.size() == 2);
  CHECK(recording.dictionary.threads[0].owner == 1000);
  CHECK(recording.dictionary.threads[1].owner == 1001);
  CHECK(recording.dictionary.threads[1].is_hidden);
  CHECK(recording.dictionary.processes[0].owner == 1001);
  CHECK(recording.dictionary.processes[0].is_hidden);
}

TEST_CASE("a gap is written once, and again when it has grown") {
  TestStore test;
  Recording recording;
  const WallTime from = test.clock.wall();
  const store::Gap gap{from, {from.ns + kNsPerSecond}, store::GapReason::kTimerSilent, 1};
  test.store.add_gap(gap);
  test.pass_minutes(3);
  CHECK(recording.take(test.store).additions.gaps == std::vector{gap});
  test.pass_minutes(1);
  CHECK(recording.take(test.store).additions.gaps.empty());
  test.store.add_gap({gap.to, {gap.to.ns + kNsPerSecond}, gap.reason, gap.cpu});
  test.pass_minutes(1);
  const std::vector<store::Gap> grown = recording.take(test.store).additions.gaps;
  REQUIRE(grown.size() == 1);
  CHECK(grown[0].from == gap.from);
  CHECK(grown[0].to.ns == gap.to.ns + kNsPerSecond);
}

TEST_CASE("a pid that comes back is another process") {
  TestStore test({.retention_ns = 2 * kNsPerMinute});
  Recording recording;
  for (std::uint64_t start = 1; start <= 10; ++start) {
    const ProcessId process{200, start};
    test.store.update_process({process, "again", "", 0, {}, {}});
    test.add({code(1), code(start)}, process);
    test.store.end_process(process, test.clock.wall());
    for (int minute = 0; minute < 4; ++minute) {
      test.pass_minutes(1);
      recording.take(test.store);
    }
  }
  CHECK(recording.dictionary.processes.size() == 10);
  CHECK(recording.dictionary.threads.size() == 10);
}

TEST_CASE("minutes mean what they mean in the store, however often it reuses its ids") {
  // Room for a few minutes of these samples: each sweep frees ids, which the next stacks get.
  TestStore test({.retention_ns = 20 * kNsPerMinute, .budget_bytes = 1U << 20});
  Recording recording;
  std::mt19937_64 random(1);
  for (int minute = 0; minute < 150; ++minute) {
    for (int sample = 0; sample < 300; ++sample) {
      const auto pid = static_cast<std::int32_t>(100 + random() % 10);
      const std::uint64_t start = 1 + (random() % 4 == 0 ? static_cast<std::uint64_t>(minute) : 0);
      std::vector<Frame> frames;
      // Most stacks are unique to their minute, and share callers with others.
      for (std::size_t depth = 1 + random() % 12; depth > 0; --depth) {
        const std::uint64_t place = random() % 8 == 0 ? random() % 100'000 : random() % 3;
        frames.push_back({ModuleId{static_cast<std::uint32_t>(16 + random() % 3)}, place});
      }
      test.add(frames, {pid, start});
    }
    test.pass_minutes(1);
    recording.take(test.store);
  }
  CHECK(recording.minutes >= 149);
  const store::StoreStats stats = test.store.stats();
  CHECK(stats.slots_dropped_for_age + stats.slots_dropped_for_budget > 100);
  CHECK(recording.dictionary.size.stacks > 4 * stats.nodes);
}

}  // namespace flamed::archive
