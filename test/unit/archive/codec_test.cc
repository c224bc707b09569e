// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/block.h"
#include "archive/codec/minute.h"
#include "archive/codec/names.h"
#include "archive/codec/samples.h"
#include "archive/codec/stack_places.h"
#include "test/catch.h"

namespace flamed::archive {
namespace {

using store::Gap;
using store::GapReason;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
  /// Any number of bits, each as often.
  std::uint64_t any() { return engine_() >> below(64); }
  std::int64_t any_signed() { return static_cast<std::int64_t>(engine_()) >> below(64); }
  std::string text() {
    std::string text(below(40), ' ');
    for (char& c : text) c = static_cast<char>(below(256));
    return below(3) == 0 ? "the same" : text;
  }

 private:
  std::mt19937_64 engine_;
};

Additions random_additions(Random& random, const DictionarySize& known) {
  Additions additions;
  additions.before = known;
  for (auto left = random.below(4); left > 0; --left) {
    Module module{static_cast<ModuleKind>(random.below(kModuleKinds)), random.text(), {}};
    if (module.kind == ModuleKind::kAnonymous) module.owner = {static_cast<std::int32_t>(random.any()), random.any()};
    additions.modules.push_back(module);
  }
  const std::uint64_t modules = kFirstFreeModule.value + known.modules + additions.modules.size();
  for (auto left = random.below(50); left > 0; --left) {
    const auto module = static_cast<std::uint32_t>(random.below(modules));
    const bool is_marker = module == kTruncatedModule.value;
    additions.frames.push_back({module, is_marker ? random.below(store::kTruncationCount) : random.any()});
  }
  const std::uint64_t frames = known.frames + additions.frames.size();
  for (auto left = frames == 0 ? 0 : random.below(80); left > 0; --left) {
    const std::uint64_t number = known.stacks + additions.stacks.size();
    additions.stacks.push_back(
        {static_cast<std::uint32_t>(random.below(number)), static_cast<std::uint32_t>(random.below(frames))});
  }
  std::uint32_t processes = known.processes;
  for (auto left = random.below(10); left > 0; --left) {
    ProcessState process;
    process.number = static_cast<std::uint32_t>(random.below(processes + 1));
    if (process.number == processes) ++processes;
    process.info = {
        {static_cast<std::int32_t>(random.any()), random.any()}, random.text(), random.text(), random.any(), {}, {}};
    if (random.below(2) == 0) process.info.started = WallTime{random.any_signed()};
    if (random.below(2) == 0) process.info.ended = WallTime{random.any_signed()};
    process.info.parent_pid = static_cast<std::int32_t>(random.any());
    process.info.parent_start_ticks = random.any();
    if (random.below(2) == 0) process.info.uid = static_cast<std::uint32_t>(random.below(store::kNoUser));
    process.info.command_line = random.text();
    process.info.cgroup = random.text();
    process.info.unit = random.text();
    process.info.container = random.text();
    process.owner = static_cast<std::uint32_t>(random.any());
    process.is_hidden = random.below(2) == 0;
    additions.processes.push_back(process);
  }
  for (auto left = processes == 0 ? 0 : random.below(20); left > 0; --left) {
    additions.threads.push_back({static_cast<std::uint32_t>(random.below(processes)),
                                 static_cast<std::int32_t>(random.any()), random.text(),
                                 static_cast<std::uint32_t>(random.any()), random.below(2) == 0});
  }
  for (auto left = random.below(4); left > 0; --left) {
    Gap gap{{random.any_signed()}, {random.any_signed()}, static_cast<GapReason>(random.below(store::kGapReasonCount))};
    if (random.below(2) == 0) gap.cpu = static_cast<std::uint16_t>(random.any());
    gap.lost_samples = random.any();
    additions.gaps.push_back(gap);
  }
  return additions;
}

Minute random_minute(Random& random, const DictionarySize& known) {
  Minute minute;
  minute.start.ns = random.any_signed() / 8;
  minute.end.ns = minute.start.ns + 1 + static_cast<std::int64_t>(random.below(std::uint64_t{1} << 40));
  minute.wall_offset_ns = random.any_signed() / 8;
  minute.period_ns = 1 + static_cast<std::int64_t>(random.below(std::uint64_t{1} << 40));
  minute.sequence = static_cast<std::uint32_t>(random.any());
  if (random.below(2) == 1) minute.first = minute.sequence / 2;
  minute.cpus = static_cast<std::uint32_t>(random.any());
  if (random.below(2) == 0) minute.cpu_ns_accounted = random.any();
  minute.quality.whole = random.any();
  for (std::uint64_t& count : minute.quality.truncated) count = random.any();
  for (std::uint64_t& count : minute.quality.lost) count = random.any();
  std::set<std::tuple<std::uint32_t, std::uint32_t, bool>> seen;
  for (auto left = known.threads == 0 ? 0 : random.below(200); left > 0; --left) {
    Pair pair{static_cast<std::uint32_t>(random.below(known.threads)),
              static_cast<std::uint32_t>(random.below(known.stacks)), random.below(5) == 0,
              1 + (random.below(3) == 0 ? static_cast<std::uint32_t>(random.any() >> 1) % 0xfffffff0U : 0U)};
    if (seen.insert({pair.thread, pair.stack, pair.is_cut}).second) minute.pairs.push_back(pair);
  }
  std::sort(minute.pairs.begin(), minute.pairs.end());
  return minute;
}

bool is_same(const store::ProcessInfo& a, const store::ProcessInfo& b) {
  return a.id == b.id && a.comm == b.comm && a.executable == b.executable && a.cgroup_id == b.cgroup_id &&
         a.started == b.started && a.ended == b.ended && a.parent_pid == b.parent_pid &&
         a.parent_start_ticks == b.parent_start_ticks && a.uid == b.uid && a.command_line == b.command_line &&
         a.cgroup == b.cgroup && a.unit == b.unit && a.container == b.container;
}

void check_same(const Additions& a, const Additions& b) {
  CHECK(a.before == b.before);
  CHECK(a.modules == b.modules);
  CHECK(a.frames == b.frames);
  CHECK(a.stacks == b.stacks);
  CHECK(a.threads == b.threads);
  CHECK(a.gaps == b.gaps);
  REQUIRE(a.processes.size() == b.processes.size());
  for (std::size_t i = 0; i < a.processes.size(); ++i) {
    CHECK(a.processes[i].number == b.processes[i].number);
    CHECK(a.processes[i].owner == b.processes[i].owner);
    CHECK(a.processes[i].is_hidden == b.processes[i].is_hidden);
    CHECK(is_same(a.processes[i].info, b.processes[i].info));
  }
}

void check_same(const Minute& a, const Minute& b) {
  CHECK(a.start == b.start);
  CHECK(a.end == b.end);
  CHECK(a.wall_offset_ns == b.wall_offset_ns);
  CHECK(a.period_ns == b.period_ns);
  CHECK(a.sequence == b.sequence);
  CHECK(a.first == b.first);
  CHECK(a.cpus == b.cpus);
  CHECK(a.cpu_ns_accounted == b.cpu_ns_accounted);
  CHECK(a.quality.whole == b.quality.whole);
  CHECK(a.quality.truncated == b.quality.truncated);
  CHECK(a.quality.lost == b.quality.lost);
  CHECK(a.pairs == b.pairs);
}

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
  Result<std::vector<std::byte>> bytes = encode(value);
  REQUIRE(bytes.ok());
  return std::move(*bytes);
}

/// One of each kind.
Additions small_additions() {
  Additions additions;
  additions.modules = {{ModuleKind::kFile, "/usr/lib/libc.so.6", {}}};
  additions.frames = {{kFirstFreeModule.value, 0x1234}, {kFirstFreeModule.value, 0x1000}};
  additions.stacks = {{0, 0}, {1, 1}};
  ProcessState process;
  process.info.id = {100, 5000};
  process.info.comm = "worker";
  additions.processes = {process};
  additions.threads = {{0, 101, "worker", 1000, false}};
  return additions;
}

Minute small_minute() {
  Minute minute;
  minute.end.ns = kNsPerMinute;
  minute.period_ns = 10 * kNsPerMs;
  minute.pairs = {{0, 1, false, 3}, {0, 2, false, 1}, {0, 2, true, 1}};
  return minute;
}

}  // namespace

TEST_CASE("random minutes are the same after they were written and read") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    StackPlaces known;
    std::vector<std::pair<Minute, std::vector<std::byte>>> all;
    for (int minute = 0; minute < 5; ++minute) {
      const Additions additions = random_additions(random, known.size());
      const Result<Additions> read_additions = decode_additions(bytes_of(additions), known.size());
      REQUIRE(read_additions.ok());
      check_same(*read_additions, additions);
      known.add(additions);
      const Minute written = random_minute(random, known.size());
      const Result<Minute> read = decode_minute(bytes_of(written), known);
      REQUIRE(read.ok());
      check_same(*read, written);
      all.emplace_back(written, encode(written, known).value());
    }
    // Places stay as they were when more is added.
    for (const auto& [written, block] : all) {
      const Result<Minute> read = decode_minute(block, known);
      REQUIRE(read.ok());
      check_same(*read, written);
    }
  }
}

TEST_CASE("later states of processes are the same after they were written and read") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Additions additions;
    additions.processes = random_additions(random, {}).processes;
    for (std::size_t i = 0; i < additions.processes.size(); ++i) {
      additions.processes[i].number = static_cast<std::uint32_t>(3 * i);
    }
    const std::vector<std::byte> block = encode_states(additions.processes).value();
    Additions read;
    read.processes = decode_states(block).value();
    check_same(read, additions);
    CHECK_FALSE(decode_states(std::span(block).first(block.size() - 1)).ok());
    CHECK_FALSE(decode_additions(block, {}).ok());
  }
}

TEST_CASE("a minute says its times without its dictionary, in either version") {
  StackPlaces places;
  places.add(small_additions());
  for (const std::vector<std::byte>& block : {bytes_of(small_minute()), encode(small_minute(), places).value()}) {
    const Result<Minute> head = decode_head(block);
    REQUIRE(head.ok());
    Minute expected = small_minute();
    expected.pairs.clear();
    check_same(*head, expected);
    CHECK_FALSE(decode_head(std::span(block).first(block.size() - 1)).ok());
  }
}

TEST_CASE("a version that is not known is refused as such") {
  StackPlaces places;
  places.add(small_additions());
  std::vector<std::byte> block = encode(small_minute(), places).value();
  CHECK(block[0] == std::byte{2});
  // As an older flamed reads it.
  CHECK(decode_minute(block, places.size()).error().code() == ENOTSUP);
  block[0] = std::byte{3};
  CHECK(decode_minute(block, places).error().code() == ENOTSUP);
  CHECK(decode_head(block).error().code() == ENOTSUP);
  CHECK_FALSE(decode_minute({}, places).ok());
}

namespace {

/// Of 200 programs with 100 stacks each, which are numbered in turns: the first one from 2 on, later ones from 401 on.
Additions additions_of_programs() {
  Additions additions;
  for (std::uint32_t frame = 0; frame < 1000; ++frame) additions.frames.push_back({kFirstFreeModule.value, frame});
  additions.modules = {{ModuleKind::kFile, "/usr/bin/program", {}}};
  additions.processes.resize(1);
  additions.threads.resize(200);
  for (std::uint32_t frame = 0; frame < 100; ++frame) {
    for (std::uint32_t program = 0; program < 200; ++program) {
      const auto stack = static_cast<std::uint32_t>(additions.stacks.size() + 1);
      if (frame == 0) additions.stacks.push_back({0, program});
      additions.stacks.push_back({frame == 0 ? stack : 2 * program + 1, 200 + frame});
    }
  }
  return additions;
}

}  // namespace

TEST_CASE("stacks that begin with the same frame are in one group, those that are called from in another") {
  Additions additions;
  additions.frames.resize(1);
  additions.stacks = {{0, 0}, {1, 0}, {0, 0}, {1, 0}, {2, 0}};
  StackPlaces places;
  places.add(additions);
  const auto place = [&](std::uint32_t stack) { return std::pair(places.of(stack).group, places.of(stack).rank); };
  CHECK(place(0) == std::pair(0U, 0U));
  CHECK(place(1) == std::pair(3U, 0U));
  CHECK(place(2) == std::pair(3U, 1U));
  CHECK(place(4) == std::pair(2U, 0U));
  CHECK(place(5) == std::pair(2U, 1U));
  CHECK(place(3) == std::pair(4U, 0U));
  CHECK(places.group(5).empty());
  CHECK(places.groups() == 6);
}

TEST_CASE("additions that come again with more have the places that they have at once") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    StackPlaces at_once;
    StackPlaces in_parts;
    for (int minute = 0; minute < 4; ++minute) {
      const Additions additions = random_additions(random, at_once.size());
      Additions so_far = additions;
      so_far.stacks.resize(random.below(additions.stacks.size() + 1));
      in_parts.add(so_far);
      in_parts.add(additions);
      at_once.add(additions);
      REQUIRE(in_parts.size() == at_once.size());
      REQUIRE(in_parts.groups() == at_once.groups());
      for (std::size_t group = 0; group < at_once.groups(); ++group) {
        REQUIRE(std::equal(in_parts.group(group).begin(), in_parts.group(group).end(), at_once.group(group).begin(),
                           at_once.group(group).end()));
      }
    }
  }
}

TEST_CASE("with places, the stacks of a thread take a fifth less where many programs run") {
  StackPlaces places;
  places.add(additions_of_programs());
  Minute minute = small_minute();
  minute.pairs.clear();
  Random random(1);
  for (std::uint32_t thread = 0; thread < 200; ++thread) {
    for (std::uint32_t i = 0; i < 40; ++i) {
      const std::uint32_t frame = i * 2 + static_cast<std::uint32_t>(random.below(2));
      minute.pairs.push_back({thread, frame == 0 ? 2 * thread + 2 : 201 + 200 * frame + thread});
    }
  }
  const std::vector<std::byte> block = encode(minute, places).value();
  CHECK(block.size() * 5 < bytes_of(minute).size() * 4);
  CHECK(decode_minute(block, places)->pairs == minute.pairs);
}

TEST_CASE("outermost frames without end take bounded memory") {
  Additions additions;
  additions.frames.resize(1);
  additions.threads.resize(1);
  additions.stacks.resize(50'000);
  StackPlaces places;
  places.add(additions);
  CHECK(places.groups() == 8192);
  Minute minute = small_minute();
  minute.pairs.clear();
  for (std::uint32_t stack = 0; stack <= 50'000; stack += 3) minute.pairs.push_back({0, stack});
  CHECK(decode_minute(encode(minute, places).value(), places)->pairs == minute.pairs);
  additions.stacks.resize(10);
  places.add(additions);
  CHECK(places.groups() == 22);
}

TEST_CASE("places that are not there are refused, also in groups out of order") {
  StackPlaces places;
  places.add(small_additions());
  const auto reads = [&](std::initializer_list<unsigned> stacks, std::initializer_list<unsigned> counts,
                         std::initializer_list<unsigned> groups) {
    std::vector<Column> columns(5);
    for (const unsigned value : {0U, 2U, 0U, 2U, 1U, 1U, 0U, 0U, 0U, 0U, 0U, 3U}) columns[0].put(value);
    for (const unsigned value : {0U, 2U}) columns[1].put(value);
    for (const unsigned value : stacks) columns[2].put(value);
    for (const unsigned value : counts) columns[3].put(value);
    for (const unsigned value : groups) columns[4].put(value);
    return decode_minute(*pack_block(2, columns), places).ok();
  };
  CHECK(reads({0, 1, 1}, {1, 4}, {2, 1, 1, 0}));
  CHECK_FALSE(reads({2, 1, 1}, {1, 4}, {2, 1, 1, 0}));  // a rank beyond the group
  CHECK_FALSE(reads({0, 1, 1}, {1, 4}, {4, 1, 1, 0}));  // a group beyond the last
  CHECK_FALSE(reads({0, 1, 0}, {1}, {2, 1, 0, 0}));     // a group again
  CHECK_FALSE(reads({0, 1, 1}, {1, 4}, {2, 1, 1, 1}));  // more stacks than the thread has
  CHECK_FALSE(reads({0, 1, 1}, {1, 4}, {2, 1}));        // fewer
  CHECK_FALSE(reads({0, 0, 1}, {4}, {2, 1, 1, 0}));     // the same stack twice
  CHECK_FALSE(reads({0}, {}, {1, 0}));                  // a group without stacks
}

TEST_CASE("damage does not change a minute with places") {
  StackPlaces places;
  places.add(small_additions());
  const std::vector<std::byte> block = encode(small_minute(), places).value();
  for (std::size_t i = 0; i < block.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> damaged = block;
      damaged[i] ^= std::byte{1} << bit;
      // Some bits of zstd's header mean nothing.
      if (const auto read = decode_minute(damaged, places)) check_same(*read, small_minute());
    }
    CHECK_FALSE(decode_minute(std::span(block).first(i), places).ok());
  }
}

namespace {

/// In the order of time, as many of each pair as it counts.
std::vector<Sample> random_samples(Random& random, Minute& minute) {
  std::vector<Sample> samples;
  for (std::uint32_t pair = 0; pair < minute.pairs.size(); ++pair) {
    minute.pairs[pair].count = 1 + static_cast<std::uint32_t>(random.below(4));
    for (std::uint32_t i = 0; i < minute.pairs[pair].count; ++i) {
      // One in ten comes from the minute before.
      const auto into = static_cast<std::int64_t>(random.below(60)) - (random.below(10) == 0 ? 5 : 0);
      samples.push_back(
          {{minute.start.ns + into * kNsPerSecond}, pair, static_cast<std::uint16_t>(random.below(1U << 16))});
    }
  }
  std::shuffle(samples.begin(), samples.end(), std::mt19937(7));
  std::stable_sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.time < b.time; });
  return samples;
}

}  // namespace

TEST_CASE("single samples are the same, in the same order, after they were written and read") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Minute minute = random_minute(random, {0, 0, 40, 40, 0});
    const std::vector<Sample> samples = random_samples(random, minute);
    const auto block = encode(std::span<const Sample>(samples));
    REQUIRE(block.ok());
    const Result<std::vector<Sample>> read = decode_samples(*block, minute);
    REQUIRE(read.ok());
    CHECK(*read == samples);
  }
}

TEST_CASE("single samples that are not those of the minute are refused") {
  const Minute minute = small_minute();
  const std::vector<Sample> samples{{{5}, 0, 1}, {{7}, 1, 0}, {{7}, 0, 1}, {{9}, 2, 0}, {{9}, 0, 0}};
  const auto refuses = [&](const std::vector<Sample>& wrong) {
    return !decode_samples(*encode(std::span<const Sample>(wrong)), minute).ok();
  };
  CHECK_FALSE(refuses(samples));
  std::vector<Sample> wrong = samples;
  wrong.pop_back();
  CHECK(refuses(wrong));
  wrong = samples;
  wrong.push_back({{9}, 0, 0});
  CHECK(refuses(wrong));
  wrong = samples;
  wrong[0].pair = 3;
  CHECK(refuses(wrong));
  wrong[0].pair = 1;
  CHECK(refuses(wrong));
  wrong = samples;
  wrong.front().time.ns = std::numeric_limits<std::int64_t>::min() / 2;
  CHECK(refuses(wrong));
  wrong = samples;
  wrong.back().time.ns = std::numeric_limits<std::int64_t>::max() / 2;
  CHECK(refuses(wrong));
}

TEST_CASE("damage does not change single samples") {
  const Minute minute = small_minute();
  const std::vector<Sample> samples{{{5}, 0, 1}, {{7}, 1, 0}, {{7}, 0, 1}, {{9}, 2, 0}, {{9}, 0, 0}};
  const auto block = encode(std::span<const Sample>(samples));
  REQUIRE(block.ok());
  for (std::size_t i = 0; i < block->size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> damaged = *block;
      damaged[i] ^= std::byte{1} << bit;
      // Some bits of zstd's header mean nothing.
      if (const auto read = decode_samples(damaged, minute)) CHECK(*read == samples);
    }
    CHECK_FALSE(decode_samples(std::span(*block).first(i), minute).ok());
  }
}

TEST_CASE("a minute without samples takes few bytes") {
  Minute minute = small_minute();
  minute.pairs.clear();
  minute.start.ns = 86'400 * kNsPerSecond;
  minute.end.ns = minute.start.ns + kNsPerMinute;
  minute.wall_offset_ns = 1'767'268'800 * kNsPerSecond;
  CHECK(bytes_of(minute).size() < 90);
  CHECK(bytes_of(Additions{}).size() < 60);
}

TEST_CASE("a minute that refers to what is not in the dictionary is refused") {
  const DictionarySize known = small_additions().after();
  CHECK(decode_minute(bytes_of(small_minute()), known).ok());
  DictionarySize smaller = known;
  --smaller.stacks;
  CHECK_FALSE(decode_minute(bytes_of(small_minute()), smaller).ok());
  smaller = known;
  --smaller.threads;
  CHECK_FALSE(decode_minute(bytes_of(small_minute()), smaller).ok());
}

TEST_CASE("additions to another dictionary than the known one are refused") {
  const std::vector<std::byte> block = bytes_of(small_additions());
  CHECK(decode_additions(block, {}).ok());
  for (const DictionarySize& other :
       {DictionarySize{1, 0, 1, 0, 0}, DictionarySize{0, 1, 1, 0, 0}, DictionarySize{0, 0, 2, 0, 0},
        DictionarySize{0, 0, 1, 1, 0}, DictionarySize{0, 0, 1, 0, 1}}) {
    CHECK_FALSE(decode_additions(block, other).ok());
  }
}

TEST_CASE("additions that refer to what is not in the dictionary are refused") {
  const auto refuses = [](const Additions& additions) { return !decode_additions(bytes_of(additions), {}).ok(); };
  Additions wrong = small_additions();
  wrong.frames[1].module = kFirstFreeModule.value + 1;
  CHECK(refuses(wrong));
  wrong = small_additions();
  wrong.stacks[1].frame = 2;
  CHECK(refuses(wrong));
  wrong = small_additions();
  wrong.threads[0].process = 1;
  CHECK(refuses(wrong));
  wrong = small_additions();
  wrong.processes[0].number = 1;
  CHECK(refuses(wrong));
  wrong = small_additions();
  wrong.frames[0] = {kTruncatedModule.value, store::kTruncationCount};
  CHECK(refuses(wrong));
}

TEST_CASE("a stack can't be its own caller") {
  Additions wrong = small_additions();
  wrong.stacks[1].caller = 2;
  CHECK_FALSE(decode_additions(bytes_of(wrong), {}).ok());
}

TEST_CASE("the same pair twice is refused, and so are pairs out of order") {
  const DictionarySize known = small_additions().after();
  Minute wrong = small_minute();
  wrong.pairs = {{0, 1, false, 1}, {0, 1, false, 1}};
  CHECK_FALSE(decode_minute(bytes_of(wrong), known).ok());
  wrong.pairs = {{0, 1, true, 1}, {0, 1, false, 1}};
  CHECK_FALSE(decode_minute(bytes_of(wrong), known).ok());
  wrong.pairs = {{0, 2, false, 1}, {0, 1, false, 1}};
  CHECK_FALSE(decode_minute(bytes_of(wrong), known).ok());
}

TEST_CASE("a stretch that begins after its last minute is refused") {
  const DictionarySize known = small_additions().after();
  Minute minute = small_minute();
  minute.sequence = 9;
  minute.first = 9;
  CHECK(decode_minute(bytes_of(minute), known).ok());
  minute.first = 10;
  CHECK_FALSE(decode_minute(bytes_of(minute), known).ok());
}

TEST_CASE("a minute that ends before it begins is refused") {
  Minute wrong = small_minute();
  wrong.end = wrong.start;
  CHECK_FALSE(decode_minute(bytes_of(wrong), small_additions().after()).ok());
}

TEST_CASE("reasons keep their numbers, which are kept on disk") {
  using store::Loss;
  using store::Truncation;
  CHECK(static_cast<int>(Truncation::kDepthLimit) == 0);
  CHECK(static_cast<int>(Truncation::kStoreFull) == 5);
  CHECK(static_cast<int>(Truncation::kNewProcess) == 6);
  CHECK(static_cast<int>(Truncation::kDamagedStack) == 12);
  CHECK(static_cast<int>(Truncation::kUserShare) == 13);
  CHECK(static_cast<int>(Truncation::kGuessed) == 15);
  CHECK(static_cast<int>(Truncation::kStackNotRead) == 18);
  CHECK(static_cast<int>(Loss::kRingFull) == 0);
  CHECK(static_cast<int>(Loss::kStoreFull) == 4);
  CHECK(static_cast<int>(GapReason::kCpuCameOnline) == 0);
  CHECK(static_cast<int>(GapReason::kLost) == 4);
  CHECK(static_cast<int>(GapReason::kNotRunning) == 5);
  CHECK(static_cast<int>(FrameKind::kNative) == 1);
  CHECK(static_cast<int>(FrameKind::kMarker) == 9);
  CHECK(kTruncatedModule.value == 3);
  CHECK(kFirstFreeModule.value == 16);
}

TEST_CASE("a minute with a reason that this flamed does not know is refused") {
  // The columns of a minute, with one more kind of lost samples than there is.
  std::vector<Column> columns(4);
  for (const unsigned value : {0U, 2U, 0U, 2U, 1U, 1U, 0U, 0U, 0U}) columns[0].put(value);
  const auto lost = static_cast<std::size_t>(store::kLossCount);
  const auto minute_with = [&](std::size_t losses) {
    std::vector<Column> all = columns;
    all[0].put(0);  // truncated
    all[0].put(losses);
    for (std::size_t i = 0; i < losses; ++i) all[0].put(7);
    all[0].put(0);  // pairs
    return decode_minute(*pack_block(1, all), DictionarySize{}).ok();
  };
  CHECK(minute_with(lost));
  CHECK_FALSE(minute_with(lost + 1));
}

namespace {

std::vector<Name> random_names(Random& random, std::uint32_t frames) {
  std::vector<std::shared_ptr<const InlineChain>> chains;
  for (auto left = 1 + random.below(5); left > 0; --left) {
    InlineChain chain;
    for (auto depth = 1 + random.below(3); depth > 0; --depth) {
      NamedFrame frame{random.text(), random.text(), static_cast<FrameKind>(random.below(9)), random.text()};
      frame.full_name = random.text();
      frame.build_id = random.text();
      frame.file = random.text();
      frame.line = static_cast<std::uint32_t>(random.any());
      frame.inlined = random.below(2) == 0;
      if (frame.kind == FrameKind::kUnnamed) frame.offset = random.any();
      chain.push_back(frame);
    }
    chains.push_back(share(std::move(chain)));
  }
  std::vector<Name> names;
  for (auto left = random.below(20); left > 0; --left) {
    names.push_back({static_cast<std::uint32_t>(random.below(frames)), chains[random.below(chains.size())]});
  }
  return names;
}

}  // namespace

TEST_CASE("names are read as they were written, and chains that were shared still are") {
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    const auto frames = static_cast<std::uint32_t>(1 + random.below(1000));
    const std::vector<Name> names = random_names(random, frames);
    const auto block = encode(std::span<const Name>(names));
    REQUIRE(block.ok());
    const Result<std::vector<Name>> read = decode_names(*block, frames);
    REQUIRE(read.ok());
    REQUIRE(read->size() == names.size());
    for (std::size_t n = 0; n < names.size(); ++n) {
      CHECK((*read)[n].frame == names[n].frame);
      CHECK(*(*read)[n].chain == *names[n].chain);
      CHECK(((*read)[n].chain == (*read)[0].chain) == (names[n].chain == names[0].chain));
    }
  }
}

TEST_CASE("only the names that are wanted are read, and a block says which is the lowest of its frames") {
  Random random(8);
  for (int i = 0; i < 300; ++i) {
    const auto frames = static_cast<std::uint32_t>(1 + random.below(1000));
    std::vector<Name> names = random_names(random, frames);
    const std::vector<std::byte> block = encode(std::span<const Name>(names)).value();
    const auto by_frame = [](const Name& a, const Name& b) { return a.frame < b.frame; };
    if (!names.empty()) {
      CHECK(lowest_frame_in(block) == std::min_element(names.begin(), names.end(), by_frame)->frame);
    }
    const auto is_wanted = [](std::uint32_t frame) { return frame % 3 == 0; };
    const auto some = decode_names(block, frames, is_wanted);
    REQUIRE(some.ok());
    std::erase_if(names, [&](const Name& name) { return !is_wanted(name.frame); });
    REQUIRE(some->size() == names.size());
    for (std::size_t n = 0; n < names.size(); ++n) {
      CHECK((*some)[n].frame == names[n].frame);
      CHECK(*(*some)[n].chain == *names[n].chain);
    }
    // Of flamed's first versions, which did not say it.
    const std::span<const std::byte> older = take_stamp(block).block;
    CHECK_FALSE(lowest_frame_in(older));
    CHECK(decode_names(older, frames, is_wanted)->size() == names.size());
  }
}

TEST_CASE("names of frames that are not in the dictionary are refused, and damage does not change a name") {
  const std::vector<Name> names{{5, share({NamedFrame{"f", "lib", FrameKind::kNative, ""}})}};
  const auto block = encode(std::span<const Name>(names));
  REQUIRE(block.ok());
  CHECK(decode_names(*block, 6).ok());
  CHECK_FALSE(decode_names(*block, 5).ok());
  for (std::size_t i = 0; i < block->size(); ++i) {
    std::vector<std::byte> damaged = *block;
    damaged[i] ^= std::byte{0x10};
    // A bit of zstd's header means nothing.
    if (const auto read = decode_names(damaged, 6)) CHECK(*read->front().chain == *names.front().chain);
  }
}

}  // namespace flamed::archive
