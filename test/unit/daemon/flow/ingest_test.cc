// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/ingest.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "store/query/query.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/daemon/flow/path_namer.h"
#include "test/unit/daemon/sampler/record_bytes.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::daemon {
namespace {

using store::Loss;
using store::Truncation;
using test::SampleFields;

constexpr std::int64_t kStartNs = 1000 * kNsPerSecond;
constexpr std::int64_t kWallOffsetNs = 1'700'000'000 * kNsPerSecond;
constexpr std::uint64_t kProgram = 0x400000;
constexpr std::uint64_t kLibrary = 0x7f0000000000;

MonotonicTime at(std::int64_t ms) { return {kStartNs + ms * kNsPerMs}; }

/// Ingest with all that it needs, and batches as from the reader.
struct Pipeline {
  /// Records in any order, as from one drain at `ms`.
  void feed(std::int64_t ms, const std::vector<std::vector<std::byte>>& records, const SampleCounts& counts = {},
            std::optional<MonotonicTime> side_band_lost_from = std::nullopt) {
    clock.advance_ns(at(ms).ns - clock.monotonic().ns);
    EventBatch batch;
    EventBatch later;
    for (const std::vector<std::byte>& record : records) {
      const RecordHead head = read_head(record);
      if (head.kind == RecordKind::kMalformed)
        ++batch.malformed;
      else
        batch.append(head);
    }
    batch.sort_and_split(at(ms), later);
    CHECK(later.empty());
    batch.drained_at = at(ms);
    batch.counts = counts;
    batch.side_band_lost_from = side_band_lost_from;
    batch.muted = std::exchange(muted, {});
    ingest.apply(batch);
  }
  [[nodiscard]] store::Profile profile(std::int32_t pid) const {
    test::PathNamer namer(modules);
    return store::build_profile(store.snapshot(), {everything(), {store::ProcessSelector{pid, std::nullopt}}}, namer);
  }
  [[nodiscard]] store::WallWindow everything() const { return {{0}, {clock.wall().ns + kNsPerMinute}}; }
  [[nodiscard]] std::vector<std::string> stacks(std::int32_t pid) const { return test::stacks_of(profile(pid)); }
  /// As the store describes it; the last one to start if a pid was reused.
  [[nodiscard]] store::ProcessInfo info(ProcessId id) const {
    for (const store::ProcessUsage& usage : store::process_usage(store.snapshot(), everything())) {
      if (usage.info.id == id) return usage.info;
    }
    FAIL("the store does not know the process");
    return {};
  }
  [[nodiscard]] store::Quality quality() const { return store.stats().quality; }

  std::vector<SideBandShares::Muted> muted;  ///< reported with the next drain
  test::FakeProc proc;
  ManualClock clock{MonotonicTime{kStartNs}, WallTime{kStartNs + kWallOffsetNs}};
  store::Store store{{}, clock, 10 * kNsPerMs};
  symbolizer::ModuleTable modules{100, clock};
  symbolizer::ProcessTracker processes{modules, clock, proc.path()};
  symbolizer::ProcessDetails details{symbolizer::CommandLines::kFull, proc.path(), {proc.path()}};
  Ingest ingest{processes, details, modules, store, clock, {}};
};

std::vector<std::byte> fork(std::int64_t ms, std::int32_t pid, std::int32_t parent_pid) {
  return test::task_record(PERF_RECORD_FORK, at(ms), pid, parent_pid, pid);
}
std::vector<std::byte> exit(std::int64_t ms, std::int32_t pid, std::int32_t tid = 0) {
  return test::task_record(PERF_RECORD_EXIT, at(ms), pid, 1, tid == 0 ? pid : tid);
}
std::vector<std::byte> exec(std::int64_t ms, std::int32_t pid, const std::string& comm) {
  return test::comm_record(at(ms), pid, pid, comm, true);
}
std::vector<std::byte> map(std::int64_t ms, std::int32_t pid, std::uint64_t start, std::uint64_t inode,
                           const std::string& path) {
  return test::mapping_record(at(ms), pid, start, 0x10000, 0x1000, inode, path);
}
/// The pid's first process started at 50 s, which is 5000 ticks.
SampleFields sample_of(std::uint32_t pid, std::vector<std::uint64_t> user, std::vector<std::uint64_t> kernel = {}) {
  SampleFields fields;
  fields.tgid = pid;
  fields.tid = pid;
  fields.user = std::move(user);
  fields.kernel = std::move(kernel);
  return fields;
}
std::vector<std::vector<std::byte>> program(std::int64_t ms, std::int32_t pid, const std::string& name,
                                            std::uint64_t inode) {
  return {fork(ms, pid, 1), exec(ms + 1, pid, name), map(ms + 2, pid, kProgram, inode, "/bin/" + name)};
}
template <typename... More>
std::vector<std::vector<std::byte>> with(std::vector<std::vector<std::byte>> records, More... more) {
  (records.push_back(std::move(more)), ...);
  return records;
}

std::uint64_t count_of(const store::Quality& quality, Truncation reason) {
  return quality.truncated[static_cast<std::size_t>(reason)];
}
std::uint64_t count_of(const store::Quality& quality, Loss reason) {
  return quality.lost[static_cast<std::size_t>(reason)];
}

TEST_CASE("each sample counts for its own period, also if the frequency changes within a batch") {
  Pipeline pipeline;
  std::vector<std::vector<std::byte>> records = program(10, 100, "cc1", 7);
  SampleFields sample = sample_of(100, {kProgram + 0x100});
  for (std::int64_t ms = 100; ms < 1000; ms += 10) {
    sample.weight_ns = static_cast<std::uint64_t>((ms < 500 ? 10 : 40) * kNsPerMs);
    if (ms < 500 || ms % 40 == 0) records.push_back(test::sample_record(at(ms), sample));
  }
  pipeline.feed(1000, records);
  sample.weight_ns = 10 * kNsPerMs;
  pipeline.feed(2000, {test::sample_record(at(1500), sample)});
  const store::Profile profile = pipeline.profile(100);
  CHECK(profile.nodes[0].total_samples == 40 + 12 * 4 + 1);
  CHECK(pipeline.quality().whole == 40 + 12 + 1);
  CHECK(profile.cpu_ns(profile.nodes[0].total_samples) == 400 * kNsPerMs + 12 * 40 * kNsPerMs + 10 * kNsPerMs);
}

TEST_CASE("who wants to know is told of each thread that begins") {
  Pipeline pipeline;
  std::vector<std::int32_t> started;
  Ingest ingest{pipeline.processes, pipeline.details,
                pipeline.modules,   pipeline.store,
                pipeline.clock,     {.thread_started = [&](std::int32_t tid) { started.push_back(tid); }}};
  EventBatch batch;
  EventBatch later;
  for (const auto& record : {fork(10, 100, 50), test::task_record(PERF_RECORD_FORK, at(11), 100, 100, 107)})
    batch.append(read_head(record));
  batch.sort_and_split(at(20), later);
  batch.drained_at = at(20);
  ingest.apply(batch);
  CHECK(started == std::vector<std::int32_t>{100, 107});
}

TEST_CASE("a process is followed from its fork to its end, all within one batch") {
  Pipeline pipeline;
  pipeline.feed(1000,
                with(program(10, 100, "cc1", 7), map(20, 100, kLibrary, 8, "/lib/libc.so.6"),
                     test::sample_record(at(30), sample_of(100, {kLibrary + 0x10, kProgram + 0x100})), exit(40, 100)));
  CHECK(pipeline.stacks(100) == std::vector<std::string>{"/bin/cc1+10ff;/lib/libc.so.6+1010 1"});
  const store::ProcessInfo info = pipeline.info({100, 5000});
  CHECK(info.comm == "cc1");
  CHECK(info.executable == "/bin/cc1");
  CHECK(info.cgroup_id == 77);
  CHECK(info.started == WallTime{50 * kNsPerSecond + kWallOffsetNs});
  CHECK(info.ended == WallTime{at(40).ns + kWallOffsetNs});
  CHECK(pipeline.quality().whole == 1);
}

TEST_CASE("a process is stored with its user, command line and cgroup, again after exec") {
  Pipeline pipeline;
  test::FakeProcess process{100, 5000};
  process.cmdline = std::string("sh\0-c\0x\0", 8);
  process.cgroup = "0::/system.slice/cron.service\n";
  process.uid = 8;
  pipeline.proc.put(process);
  pipeline.feed(1000, with(program(10, 100, "sh", 7), test::sample_record(at(30), sample_of(100, {kProgram}))));
  CHECK(pipeline.info({100, 5000}).command_line == "sh -c x");
  CHECK(pipeline.info({100, 5000}).uid == 8U);
  CHECK(pipeline.info({100, 5000}).cgroup == "/system.slice/cron.service");
  CHECK(pipeline.info({100, 5000}).unit == "cron.service");

  process.cmdline = std::string("cat\0", 4);
  process.uid = 0;
  pipeline.proc.put(process);
  pipeline.feed(2000, {exec(1500, 100, "cat")});
  CHECK(pipeline.info({100, 5000}).command_line == "cat");
  CHECK(pipeline.info({100, 5000}).uid == 0U);

  pipeline.proc.remove(100);
  pipeline.feed(3000, {exec(2500, 100, "gone"), exit(2600, 100)});
  CHECK(pipeline.info({100, 5000}).comm == "gone");
  CHECK(pipeline.info({100, 5000}).command_line.empty());
}

TEST_CASE("skipped records of a process that began in the same drain make only its later samples uncertain") {
  Pipeline pipeline;
  test::FakeProcess now{100, 5000};
  now.comm = "churner";
  now.executable = "/bin/churner";
  now.maps = test::code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/churner") +
             test::code_line(kLibrary, kLibrary + 0x10000, 0x1000, 9, "/lib/second.so");
  pipeline.proc.put(now);
  pipeline.muted = {{100, 1000, at(40), 5000, true}};
  pipeline.feed(1000, with(program(10, 100, "churner", 7), map(20, 100, kLibrary, 8, "/lib/first.so"),
                           test::sample_record(at(30), sample_of(100, {kLibrary + 0x100})),
                           test::sample_record(at(50), sample_of(100, {kLibrary + 0x100})),
                           test::sample_record(at(60), sample_of(100, {kProgram + 0x100}))));
  CHECK(pipeline.quality().whole == 2);
  CHECK(pipeline.quality().truncated[static_cast<std::size_t>(Truncation::kNoMapping)] == 1);
  const std::vector<std::string> stacks = pipeline.stacks(100);
  CHECK(std::find(stacks.begin(), stacks.end(), "/lib/first.so+1100 1") != stacks.end());
  CHECK(std::find(stacks.begin(), stacks.end(), "/bin/churner+1100 1") != stacks.end());
}

TEST_CASE("a sample belongs to the user of its thread, also if the process ended at once") {
  Pipeline pipeline;
  SampleFields sample = sample_of(100, {kProgram + 0x100});
  sample.owner = 1000;
  pipeline.feed(1000, with(program(10, 100, "cc1", 7), test::sample_record(at(30), sample), exit(40, 100)));
  CHECK(pipeline.info({100, 5000}).uid == 1000U);
  const auto seen = [&](std::uint32_t user) {
    test::PathNamer namer(pipeline.modules);
    const store::Snapshot theirs = store::seen_by(pipeline.store.snapshot(), user);
    return store::build_profile(theirs, {pipeline.everything()}, namer).nodes[0].total_samples;
  };
  CHECK(seen(1000) == 1);
  CHECK(seen(1001) == 0);
}

TEST_CASE("addresses in a process that is not dumpable are hidden from its user, until its end") {
  Pipeline pipeline;
  const auto sample_at = [](std::int64_t ms, std::uint8_t flags) {
    SampleFields sample = sample_of(100, {kProgram + 0x100});
    sample.owner = 1000;
    sample.flags = flags;
    return test::sample_record(at(ms), sample);
  };
  const auto end_at = [](std::int64_t ms) {  // which has given up its memory
    SampleFields sample = sample_of(100, {}, {test::kKernel + 0x10});
    sample.owner = 1000;
    sample.user_end = FLAMED_END_NO_USER_SPACE;
    return test::sample_record(at(ms), sample);
  };
  const auto told = [&] {
    std::vector<std::string> lines;
    test::PathNamer namer(pipeline.modules);
    const store::Snapshot theirs = store::seen_by(pipeline.store.snapshot(), 1000);
    const store::Profile profile =
        store::build_profile(theirs, {pipeline.everything(), {store::ProcessSelector{100, std::nullopt}}}, namer);
    for (std::size_t node = 1; node < profile.nodes.size(); ++node) {
      lines.push_back(profile.frames[profile.nodes[node].frame].name + " " +
                      std::to_string(profile.nodes[node].total_samples));
    }
    return lines;
  };
  const std::string hidden = "gone+0";  // the frame that replaces it has no module
  pipeline.feed(1000, with(program(10, 100, "agent", 7), sample_at(30, FLAMED_NOT_DUMPABLE), end_at(40)));
  CHECK(told() == std::vector<std::string>{hidden + " 2"});
  CHECK(pipeline.stacks(100).size() == 2);
  // Without memory its flag means nothing, and the flag before counts.
  pipeline.feed(2000, {sample_at(1030, 0), end_at(1040)});
  CHECK(told() == std::vector<std::string>{"/bin/agent+1100 1", "[kernel]+10 1", hidden + " 2"});
}

TEST_CASE("if a sample has a process's user, only the command line is read from /proc") {
  Pipeline pipeline;
  test::FakeProcess process{100, 4999};  // stat would show another process
  process.cmdline = std::string("cc1\0-O2\0", 8);
  process.uid = 8;
  pipeline.proc.put(process);
  SampleFields sample = sample_of(100, {kProgram});
  sample.owner = 1000;
  pipeline.feed(1000, with(program(10, 100, "cc1", 7), test::sample_record(at(30), sample)));
  CHECK(pipeline.info({100, 5000}).command_line == "cc1 -O2");
  CHECK(pipeline.info({100, 5000}).uid == 1000U);

  SECTION("its end changes nothing else") {
    pipeline.feed(2000, {exit(1500, 100)});
    CHECK(pipeline.info({100, 5000}).command_line == "cc1 -O2");
    CHECK(pipeline.info({100, 5000}).executable == "/bin/cc1");
    CHECK(pipeline.info({100, 5000}).ended == WallTime{at(1500).ns + kWallOffsetNs});
  }
  SECTION("nor does a new name, reported together with the end") {
    pipeline.feed(2000, {test::comm_record(at(1400), 100, 100, "renamed", false), exit(1500, 100)});
    CHECK(pipeline.info({100, 5000}).comm == "renamed");
    CHECK(pipeline.info({100, 5000}).command_line == "cc1 -O2");
    CHECK(pipeline.info({100, 5000}).ended == WallTime{at(1500).ns + kWallOffsetNs});
  }
  SECTION("a command line that was requested after the end is not the process's") {
    pipeline.feed(2000, {exit(500, 100)});
    CHECK(pipeline.info({100, 5000}).command_line.empty());
    CHECK(pipeline.info({100, 5000}).uid == 1000U);
    CHECK(pipeline.info({100, 5000}).ended == WallTime{at(500).ns + kWallOffsetNs});
  }
  SECTION("after exec its user is the later samples', and otherwise the one in /proc") {
    sample.owner = 33;
    pipeline.feed(2000, {exec(1500, 100, "nginx"), test::sample_record(at(1600), sample)});
    CHECK(pipeline.info({100, 5000}).uid == 33U);
    process.start_ticks = 5000;
    pipeline.proc.put(process);
    sample.owner = FLAMED_NO_OWNER;
    pipeline.feed(3000, {exec(2500, 100, "su"), test::sample_record(at(2600), sample)});
    CHECK(pipeline.info({100, 5000}).uid == 8U);
  }
}

TEST_CASE("a process is stored with its ancestors, also ended ones without samples") {
  Pipeline pipeline;
  test::FakeProcess make{50, 4000};
  make.comm = "make";
  pipeline.proc.put(make);
  pipeline.processes.scan();
  SampleFields compiler = sample_of(101, {kProgram});
  compiler.start_boottime_ns = static_cast<std::uint64_t>(at(20).ns);
  pipeline.feed(1000, {fork(10, 100, 50), exec(11, 100, "sh"), fork(20, 101, 100), exec(21, 101, "cc1"),
                       map(22, 101, kProgram, 7, "/bin/cc1"), test::sample_record(at(30), compiler), exit(40, 101),
                       exit(41, 100)});
  const ProcessId shell{100, static_cast<std::uint64_t>(at(10).ns) / ProcessId::kNsPerTick};
  const store::ProcessInfo info = pipeline.info({101, compiler.start_boottime_ns / ProcessId::kNsPerTick});
  CHECK(info.parent_pid == 100);
  CHECK(info.parent_start_ticks == shell.start_ticks);
  CHECK(store::knows(pipeline.store.snapshot(), {100, shell.start_ticks}));
  CHECK(store::knows(pipeline.store.snapshot(), {50, 4000}));
}

TEST_CASE("the order in which the CPUs were drained does not matter") {
  Pipeline pipeline;
  auto records =
      with(program(10, 100, "cc1", 7), test::sample_record(at(30), sample_of(100, {kProgram})), exit(40, 100));
  std::reverse(records.begin(), records.end());
  pipeline.feed(1000, records);
  CHECK(pipeline.stacks(100) == std::vector<std::string>{"/bin/cc1+1000 1"});
}

TEST_CASE("frames are stored outermost first, kernel frames inside user frames, callers by their call") {
  Pipeline pipeline;
  pipeline.feed(1000,
                with(program(10, 100, "cc1", 7),
                     test::sample_record(
                         at(30), sample_of(100, {kProgram + 0x10, kProgram + 0x20, kProgram + 0x30},
                                           {test::kKernel + 0x100, test::kKernel + 0x200, test::kKernel + 0x300}))));
  CHECK(pipeline.stacks(100) ==
        std::vector<std::string>{"/bin/cc1+102f;/bin/cc1+101f;/bin/cc1+1010;[kernel]+2ff;[kernel]+1ff;[kernel]+100 1"});
}

TEST_CASE("a kernel thread has only kernel frames, and its stack is whole") {
  Pipeline pipeline;
  test::FakeProcess thread{2, 3};
  thread.comm = "kthreadd";
  pipeline.proc.put(thread);
  SampleFields fields = sample_of(2, {}, {test::kKernel + 0x100, test::kKernel + 0x200});
  fields.start_boottime_ns = 3 * ProcessId::kNsPerTick + 123;
  fields.user_end = FLAMED_END_NO_USER_SPACE;
  fields.comm = "kthreadd";
  pipeline.feed(1000, {test::sample_record(at(30), fields)});
  CHECK(pipeline.stacks(2) == std::vector<std::string>{"[kernel]+1ff;[kernel]+100 1"});
  CHECK(pipeline.quality().whole == 1);
  CHECK(pipeline.info({2, 3}).executable.empty());
}

TEST_CASE("a process with only kernel samples has no command line, and gets it with the first user sample") {
  Pipeline pipeline;
  test::FakeProcess process{100, 5000};
  process.cmdline = std::string("cc1\0-O2\0", 8);
  pipeline.proc.put(process);
  SampleFields ending = sample_of(100, {}, {test::kKernel + 0x100});
  ending.user_end = FLAMED_END_NO_USER_SPACE;
  ending.owner = 1000;
  pipeline.feed(1000, with(program(10, 100, "cc1", 7), test::sample_record(at(30), ending)));
  CHECK(pipeline.info({100, 5000}).command_line.empty());
  CHECK(pipeline.info({100, 5000}).uid == 1000U);
  SampleFields running = sample_of(100, {kProgram});
  running.owner = 1000;
  pipeline.feed(2000, {test::sample_record(at(1500), running)});
  CHECK(pipeline.info({100, 5000}).command_line == "cc1 -O2");
}

TEST_CASE("a pid that is reused within a batch is two processes") {
  Pipeline pipeline;
  SampleFields second = sample_of(100, {kProgram});
  second.start_boottime_ns += 10 * ProcessId::kNsPerTick;
  auto records =
      with(program(10, 100, "first", 7), test::sample_record(at(30), sample_of(100, {kProgram})), exit(40, 100));
  for (auto& record : program(50, 100, "second", 8)) records.push_back(std::move(record));
  pipeline.feed(1000, with(std::move(records), test::sample_record(at(60), second), exit(70, 100)));
  CHECK(pipeline.stacks(100) == std::vector<std::string>{"/bin/first+1000 1", "/bin/second+1000 1"});
  CHECK(pipeline.info({100, 5000}).comm == "first");
  CHECK(pipeline.info({100, 5010}).comm == "second");
}

TEST_CASE("a process that ended before anything could be read is stored by its addresses") {
  Pipeline pipeline;
  SampleFields fields = sample_of(999, {0x401000, 0x402000});
  fields.comm = "short";
  pipeline.feed(1000, {test::sample_record(at(30), fields)});
  CHECK(pipeline.stacks(999) == std::vector<std::string>{"[unmapped]+401fff;[unmapped]+401000 1"});
  const store::ProcessInfo info = pipeline.info({999, 5000});
  CHECK(info.comm == "short");
  CHECK(info.ended == WallTime{at(30).ns + kWallOffsetNs});
}

TEST_CASE("a process that ran before flamed is read from /proc") {
  Pipeline pipeline;
  test::FakeProcess shell{100, 5000};
  shell.comm = "sh";
  shell.executable = "/bin/sh";
  shell.maps = test::code_line(kProgram, kProgram + 0x10000, 0x2000, 7, "/bin/sh");
  pipeline.proc.put(shell);
  pipeline.processes.scan();
  pipeline.feed(1000, {test::sample_record(at(30), sample_of(100, {kProgram + 0x10}))});
  CHECK(pipeline.stacks(100) == std::vector<std::string>{"/bin/sh+2010 1"});
  CHECK(pipeline.info({100, 5000}).executable == "/bin/sh");
  CHECK_FALSE(pipeline.info({100, 5000}).ended);
}

TEST_CASE("an exec after the first sample changes the process's description") {
  Pipeline pipeline;
  pipeline.feed(1000, with(program(10, 100, "sh", 7), test::sample_record(at(30), sample_of(100, {kProgram}))));
  CHECK(pipeline.info({100, 5000}).comm == "sh");
  pipeline.feed(2000, {exec(1100, 100, "ls"), map(1101, 100, kProgram, 8, "/bin/ls"),
                       test::sample_record(at(1200), sample_of(100, {kProgram}))});
  CHECK(pipeline.info({100, 5000}).comm == "ls");
  CHECK(pipeline.info({100, 5000}).executable == "/bin/ls");
  CHECK(pipeline.stacks(100) == std::vector<std::string>{"/bin/ls+1000 1", "/bin/sh+1000 1"});
}

TEST_CASE("a thread's name is not its process's, and a thread's end is not its end") {
  Pipeline pipeline;
  pipeline.feed(1000, with(program(10, 100, "java", 7), test::sample_record(at(30), sample_of(100, {kProgram})),
                           test::comm_record(at(40), 100, 101, "GC Thread", false), exit(50, 100, 101)));
  CHECK(pipeline.info({100, 5000}).comm == "java");
  CHECK_FALSE(pipeline.info({100, 5000}).ended);
  pipeline.feed(2000, {test::comm_record(at(1100), 100, 100, "renamed", false)});
  CHECK(pipeline.info({100, 5000}).comm == "renamed");
}

TEST_CASE("each way in which a stack can end early is stored with its reason") {
  const std::vector<std::pair<std::uint8_t, std::optional<Truncation>>> ends{
      {FLAMED_END_OUTERMOST, std::nullopt},
      {FLAMED_END_NO_USER_SPACE, std::nullopt},
      {FLAMED_END_DEPTH_LIMIT, Truncation::kDepthLimit},
      {FLAMED_END_BROKEN_POINTER, Truncation::kBrokenFramePointer},
      {FLAMED_END_UNREADABLE, Truncation::kUnreadableStack},
      {FLAMED_END_NO_REGISTERS, Truncation::kNoUserRegisters},
      {200, Truncation::kBrokenFramePointer},
  };
  for (const auto& [end, reason] : ends) {
    CAPTURE(static_cast<int>(end));
    Pipeline pipeline;
    SampleFields fields = sample_of(100, {kProgram});
    fields.user_end = end;
    pipeline.feed(1000, with(program(10, 100, "cc1", 7), test::sample_record(at(30), fields)));
    const store::Quality quality = pipeline.quality();
    CHECK(quality.whole == (reason ? 0U : 1U));
    CHECK(quality.truncated_total() == (reason ? 1U : 0U));
    if (reason) CHECK(count_of(quality, *reason) == 1);
  }
}

TEST_CASE("kernel frames that did not fit are the stored reason") {
  Pipeline pipeline;
  SampleFields fields = sample_of(100, {kProgram}, {test::kKernel});
  fields.flags = FLAMED_KERNEL_DEPTH_LIMIT;
  fields.user_end = FLAMED_END_UNREADABLE;
  pipeline.feed(1000, with(program(10, 100, "cc1", 7), test::sample_record(at(30), fields)));
  CHECK(count_of(pipeline.quality(), Truncation::kKernelDepthLimit) == 1);
  CHECK(pipeline.quality().taken() == 1);
}

TEST_CASE("a caller outside of known code cuts the stack, with that reason") {
  Pipeline pipeline;
  pipeline.feed(1000, with(program(10, 100, "cc1", 7),
                           test::sample_record(at(30), sample_of(100, {kProgram, 0x1234, kProgram + 8}))));
  CHECK(count_of(pipeline.quality(), Truncation::kBrokenFramePointer) == 1);
  const std::vector<std::string> stacks = pipeline.stacks(100);
  REQUIRE(stacks.size() == 1);
  CHECK(stacks[0].find(";/bin/cc1+1000 1") != std::string::npos);
}

TEST_CASE("a stack that broke before the process had tables has the reason of a new process") {
  Pipeline pipeline;
  SampleFields fields = sample_of(100, {kProgram, 0x1234, kProgram + 8});
  fields.flags = FLAMED_AWAITS_TABLES;
  pipeline.feed(1000, with(program(10, 100, "cc1", 7), test::sample_record(at(30), fields)));
  CHECK(count_of(pipeline.quality(), Truncation::kNewProcess) == 1);
}

TEST_CASE("every sample taken is exactly one of whole, truncated or lost for a reason") {
  Pipeline pipeline;
  SampleFields truncated = sample_of(100, {kProgram});
  truncated.user_end = FLAMED_END_DEPTH_LIMIT;
  // 5 taken besides the losses: two whole, one truncated, one with wrong counts, one cut off.
  std::vector<std::byte> wrong = test::sample_record(at(34), sample_of(100, {kProgram}));
  wrong[offsetof(flamed_record, sample) + offsetof(flamed_sample, user_count)] = std::byte{200};
  std::vector<std::byte> cut_off = test::sample_record(at(35), sample_of(100, {kProgram}));
  cut_off.resize(40);
  SampleCounts counts;
  counts.submitted = 5;
  counts.lost_ring_full = 10;
  counts.lost_no_ring = 20;
  counts.taken = 35;
  pipeline.feed(1000,
                with(program(10, 100, "cc1", 7), test::sample_record(at(30), sample_of(100, {kProgram})),
                     test::sample_record(at(31), sample_of(100, {kProgram + 0x10})),
                     test::sample_record(at(32), truncated), std::move(wrong), std::move(cut_off)),
                counts);
  const store::Quality quality = pipeline.quality();
  CHECK(quality.whole == 2);
  CHECK(quality.truncated_total() == 1);
  CHECK(count_of(quality, Loss::kMalformed) == 2);
  CHECK(count_of(quality, Loss::kRingFull) == 10);
  CHECK(count_of(quality, Loss::kNoRing) == 20);
  CHECK(quality.taken() == counts.taken);

  // Losses are reported once.
  pipeline.feed(2000, {});
  CHECK(pipeline.quality().taken() == counts.taken);
}

TEST_CASE("side-band records that can't be decoded change nothing") {
  Pipeline pipeline;
  const auto shorten = [](std::uint32_t type) {
    return test::RecordBytes(type).put(std::uint32_t{100}).put(at(35).ns).done();
  };
  pipeline.feed(1000, with(program(10, 100, "cc1", 7), test::sample_record(at(30), sample_of(100, {kProgram})),
                           shorten(PERF_RECORD_MMAP2), shorten(PERF_RECORD_COMM), shorten(PERF_RECORD_FORK),
                           shorten(PERF_RECORD_EXIT), test::sample_record(at(40), sample_of(100, {kProgram}))));
  CHECK(pipeline.stacks(100) == std::vector<std::string>{"/bin/cc1+1000 2"});
  CHECK_FALSE(pipeline.info({100, 5000}).ended);
}

TEST_CASE("after side-band records were lost, processes are read again") {
  Pipeline pipeline;
  pipeline.feed(1000, with(program(10, 100, "sh", 7), test::sample_record(at(30), sample_of(100, {kProgram}))));
  test::FakeProcess now{100, 5000};
  now.comm = "ls";
  now.executable = "/bin/ls";
  now.maps = test::code_line(kProgram, kProgram + 0x10000, 0x3000, 8, "/bin/ls");
  pipeline.proc.put(now);
  pipeline.feed(2000, {test::sample_record(at(1900), sample_of(100, {kProgram}))}, {}, at(1000));
  CHECK(pipeline.info({100, 5000}).comm == "ls");
  const std::string kUnknown = "[truncated: address outside of all known code];[unmapped]+400000 1";
  // What was mapped at the time of that sample is unknown.
  CHECK(pipeline.stacks(100) == std::vector<std::string>{"/bin/sh+1000 1", kUnknown});
  pipeline.feed(3000, {test::sample_record(at(2100), sample_of(100, {kProgram}))});
  CHECK(pipeline.stacks(100) == std::vector<std::string>{"/bin/ls+3000 1", "/bin/sh+1000 1", kUnknown});
}

TEST_CASE("a process's end is stored although its record was lost") {
  Pipeline pipeline;
  pipeline.feed(1000, with(program(10, 100, "sh", 7), test::sample_record(at(30), sample_of(100, {kProgram}))));
  pipeline.feed(2000, {}, {}, at(1000));
  pipeline.feed(3000, {});
  CHECK(pipeline.info({100, 5000}).ended == WallTime{at(2000).ns + kWallOffsetNs});
}

TEST_CASE("a late sample of a process that ended in an earlier batch is resolved as if the process were alive") {
  Pipeline pipeline;
  pipeline.feed(
      1000, with(program(10, 100, "cc1", 7), test::sample_record(at(30), sample_of(100, {kProgram})), exit(990, 100)));
  pipeline.feed(2000, {test::sample_record(at(989), sample_of(100, {kProgram + 0x10}))});
  CHECK(pipeline.stacks(100) == std::vector<std::string>{"/bin/cc1+1000 1", "/bin/cc1+1010 1"});
}

TEST_CASE("short programs without samples do not accumulate modules") {
  Pipeline pipeline;
  pipeline.feed(
      1000, with(program(10, 100, "kept", 1), test::sample_record(at(30), sample_of(100, {kProgram})), exit(40, 100)));
  std::uint64_t inode = 1000;
  for (std::int64_t second = 2; second < 60; ++second) {
    std::vector<std::vector<std::byte>> records;
    for (int i = 0; i < 500; ++i) {
      const std::int64_t ms = second * 1000 - 900;
      for (auto& record : program(ms, 200, "conftest", inode++)) records.push_back(std::move(record));
      records.push_back(exit(ms + 3, 200));
    }
    pipeline.feed(second * 1000, records);
  }
  CHECK(pipeline.modules.stats().modules < 20'000);
  CHECK(pipeline.stacks(100) == std::vector<std::string>{"/bin/kept+1000 1"});
}

TEST_CASE("a clock that is set by two hours and back loses and doubles nothing, and the time that never was is a gap") {
  Pipeline pipeline;
  constexpr std::int64_t kTwoHoursNs = 120 * kNsPerMinute;
  pipeline.feed(1000, with(program(10, 100, "cc1", 7), test::sample_record(at(30), sample_of(100, {kProgram}))));
  pipeline.clock.step_wall_ns(kTwoHoursNs);
  pipeline.feed(2000, {test::sample_record(at(1500), sample_of(100, {kProgram}))});
  pipeline.clock.step_wall_ns(-kTwoHoursNs);
  pipeline.feed(3000, {test::sample_record(at(2500), sample_of(100, {kProgram}))});
  pipeline.clock.step_wall_ns(2 * kTwoHoursNs);  // so that everything() covers it all
  const store::Profile profile = pipeline.profile(100);
  CHECK(profile.nodes.front().total_samples == 3);
  CHECK(pipeline.quality().whole == 3);
  CHECK(pipeline.quality().lost_total() == 0);
  REQUIRE(profile.missing.size() == 1);
  CHECK(profile.missing[0].reason == store::GapReason::kClockSet);
  CHECK(profile.missing[0].to == WallTime{at(2000).ns + kWallOffsetNs + kTwoHoursNs});
  CHECK(profile.missing[0].to.ns - profile.missing[0].from.ns == kTwoHoursNs);
}

TEST_CASE("time that went unsampled is a gap on the wall clock, however long the machine was suspended in it") {
  Pipeline pipeline;
  pipeline.feed(1000, with(program(10, 100, "cc1", 7), test::sample_record(at(30), sample_of(100, {kProgram}))));
  EventBatch batch;
  batch.drained_at = at(1000);
  batch.gaps.push_back({at(200), at(900), 0, store::GapReason::kTimerSilent, std::uint16_t{3}});
  batch.gaps.push_back({at(1000), at(1000), 3600 * kNsPerSecond, store::GapReason::kSuspended, {}});
  pipeline.ingest.apply(batch);
  const store::Profile profile = pipeline.profile(100);
  REQUIRE(profile.missing.size() == 2);
  CHECK(profile.missing[0].reason == store::GapReason::kSuspended);
  CHECK(profile.missing[0].from == WallTime{at(1000).ns + kWallOffsetNs - 3600 * kNsPerSecond});
  CHECK(profile.missing[1] == store::Gap{.from = WallTime{at(200).ns + kWallOffsetNs},
                                         .to = WallTime{at(900).ns + kWallOffsetNs},
                                         .reason = store::GapReason::kTimerSilent,
                                         .cpu = std::uint16_t{3}});
}

}  // namespace
}  // namespace flamed::daemon
