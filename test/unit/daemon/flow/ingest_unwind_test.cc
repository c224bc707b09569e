// SPDX-License-Identifier: Apache-2.0
//
// Ingest and the unwind tables: how samples and side-band records change them.
#include <fcntl.h>
#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "daemon/flow/ingest.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/daemon/sampler/record_bytes.h"
#include "test/unit/daemon/unwind/fake_unwind_maps.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::daemon {
namespace {

using Found = test::FakeUnwindMaps::Found;
using Record = std::vector<std::byte>;

constexpr std::int64_t kStartNs = 1000 * kNsPerSecond;
constexpr std::uint64_t kProgram = 0x400000;
constexpr std::uint64_t kLibrary = 0x7f0000000000;
constexpr std::uint64_t kStartTicks = 5000;

MonotonicTime at(std::int64_t ms) { return {kStartNs + ms * kNsPerMs}; }

struct Pipeline {
  /// Records in any order, as from one drain at `ms`.
  void feed(std::int64_t ms, const std::vector<Record>& records) {
    clock.advance_ns(at(ms).ns - clock.monotonic().ns);
    EventBatch batch;
    EventBatch later;
    for (const Record& record : records) batch.append(read_head(record));
    batch.sort_and_split(at(ms), later);
    CHECK(later.empty());
    batch.drained_at = at(ms);
    ingest.apply(batch);
  }
  [[nodiscard]] Found found(std::uint32_t pid, std::uint64_t address) { return maps.look_up(pid, address).found; }
  /// Would the kernel program walk a sample of this process by the tables?
  [[nodiscard]] bool is_current(std::uint32_t pid, std::uint64_t start_ticks, std::uint64_t exec_id) const {
    const auto entry = maps.processes.find(pid);
    return entry != maps.processes.end() && entry->second.tgid == pid && entry->second.start_ticks == start_ticks &&
           (entry->second.exec_id == exec_id || entry->second.exec_id == FLAMED_ANY_EXEC);
  }
  /// A process that runs before sampling begins.
  void run_before(std::int32_t pid, std::uint64_t inode) {
    test::FakeProcess process{pid, kStartTicks};
    process.maps = test::code_line(kProgram, kProgram + 0x10000, 0, inode, "/bin/file" + std::to_string(inode));
    proc.put(process);
  }
  void begin() {
    processes.scan();
    ingest.begin();
  }
  [[nodiscard]] std::uint16_t edition(std::uint32_t pid) const {
    const auto entry = maps.processes.find(pid);
    return entry == maps.processes.end() ? std::uint16_t{0} : static_cast<std::uint16_t>(entry->second.tables);
  }
  /// The requests to the `modules` thread.
  std::vector<symbolizer::OpenRequest> take_requests() {
    std::vector<symbolizer::OpenRequest> requests;
    std::stop_source stopped;
    stopped.request_stop();
    while (auto request = modules.next_request(stopped.get_token())) requests.push_back(std::move(*request));
    return requests;
  }

  test::FakeProc proc;
  ManualClock clock{MonotonicTime{kStartNs}, WallTime{0}};
  store::Store store{{}, clock, 10 * kNsPerMs};
  symbolizer::ModuleTable modules{100, clock};
  symbolizer::ProcessTracker processes{modules, clock, proc.path()};
  test::FakeUnwindMaps maps;
  UnwindPublisher publisher{maps, 1U << 20, clock};
  symbolizer::ProcessDetails details{symbolizer::CommandLines::kFull, proc.path(), {proc.path()}};
  Ingest ingest{processes, details, modules, store, clock, {.unwind = &publisher}};
};

Record sample(std::int64_t ms, std::uint32_t pid, std::uint64_t exec_id, std::uint8_t user_end,
              std::uint64_t start_ticks = kStartTicks, std::uint64_t pc = kProgram) {
  test::SampleFields fields;
  fields.tgid = pid;
  fields.tid = pid;
  fields.start_boottime_ns = start_ticks * ProcessId::kNsPerTick + 7;
  fields.exec_id = exec_id;
  fields.user_end = user_end;
  fields.user = {pc};
  return test::sample_record(at(ms), fields);
}
Record fork(std::int64_t ms, std::int32_t pid) { return test::task_record(PERF_RECORD_FORK, at(ms), pid, 1, pid); }
Record exit(std::int64_t ms, std::int32_t pid) { return test::task_record(PERF_RECORD_EXIT, at(ms), pid, 1, pid); }
Record exec(std::int64_t ms, std::int32_t pid) { return test::comm_record(at(ms), pid, pid, "program", true); }
Record map(std::int64_t ms, std::int32_t pid, std::uint64_t start, std::uint64_t inode) {
  return test::mapping_record(at(ms), pid, start, 0x10000, 0, inode, "/bin/file" + std::to_string(inode));
}
std::vector<Record> program(std::int64_t ms, std::int32_t pid, std::uint64_t inode) {
  return {fork(ms, pid), exec(ms + 1, pid), map(ms + 2, pid, kProgram, inode)};
}
std::vector<Record> with(std::vector<Record> records, const std::vector<Record>& more) {
  records.insert(records.end(), more.begin(), more.end());
  return records;
}

TEST_CASE("a process is entered into the unwind tables with its first sample, and that sample's file is requested") {
  Pipeline p;
  p.feed(1000, program(10, 100, 7));
  CHECK(p.maps.processes.empty());
  p.feed(2000, {map(1100, 100, kLibrary, 8), sample(1200, 100, 3, FLAMED_END_NO_PROCESS)});
  CHECK(p.is_current(100, kStartTicks, 3));
  CHECK(p.found(100, kProgram) == Found::kPending);
  CHECK(p.found(100, kLibrary + 0xffff) == Found::kPending);
  CHECK(p.found(100, kLibrary + 0x10000) == Found::kNoMapping);
  CHECK(p.take_requests().size() == 1);
}

TEST_CASE("a process that runs at the start is in the tables before its first sample, which sets its exec") {
  Pipeline p;
  p.run_before(100, 7);
  test::FakeProcess thread{2, kStartTicks};
  thread.comm = "kthreadd";
  p.proc.put(thread);
  p.begin();
  CHECK(p.maps.processes.size() == 1);
  CHECK(p.is_current(100, kStartTicks, 3));
  CHECK_FALSE(p.is_current(100, kStartTicks + 1, 3));
  CHECK(p.found(100, kProgram) == Found::kPending);
  // Samples decide which of its files get rows.
  CHECK(p.take_requests().empty());
  p.feed(1000, {sample(20, 100, 3, FLAMED_END_ROWS_PENDING)});
  CHECK(p.is_current(100, kStartTicks, 3));
  CHECK_FALSE(p.is_current(100, kStartTicks, 4));
  CHECK(p.take_requests().size() == 1);
}

TEST_CASE("a process that runs at the start is kept up to date in the tables without samples") {
  Pipeline p;
  p.run_before(100, 7);
  p.run_before(101, 7);
  p.begin();
  p.feed(1000, {map(10, 100, kLibrary, 8), exit(20, 101)});
  CHECK(p.found(100, kLibrary) == Found::kPending);
  CHECK(p.maps.processes.count(101) == 0);
  p.feed(2000, {exec(1100, 100), map(1101, 100, kLibrary, 9)});
  CHECK(p.is_current(100, kStartTicks, 3));
  CHECK(p.found(100, kProgram) == Found::kNoMapping);
  CHECK(p.found(100, kLibrary) == Found::kPending);
}

TEST_CASE("a stack walked by the tables of the program before is cut, even if their exec was not known") {
  Pipeline p;
  p.run_before(100, 7);
  p.begin();
  test::SampleFields fields;
  fields.tgid = fields.tid = 100;
  fields.start_boottime_ns = kStartTicks * ProcessId::kNsPerTick;
  fields.exec_id = 4;
  fields.flags = FLAMED_WALKED_BY_TABLES;
  fields.tables = p.edition(100);
  fields.user = {kProgram + 0x20, kProgram + 0x100};
  p.feed(1000, {exec(10, 100), map(11, 100, kProgram, 9), test::sample_record(at(20), fields)});
  CHECK(p.store.stats().quality.whole == 0);
  CHECK(p.store.stats().quality.truncated[static_cast<std::size_t>(store::Truncation::kNoMapping)] == 1);
}

TEST_CASE("a file is requested when a walk stops in it, and again if its rows were not built then") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7), {map(12, 100, kLibrary, 8), sample(20, 100, 3, FLAMED_END_NO_PROCESS)}));
  REQUIRE(p.take_requests().size() == 1);
  p.feed(2000, {sample(1100, 100, 3, FLAMED_END_ROWS_PENDING, kStartTicks, kLibrary)});
  const auto requests = p.take_requests();
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].path == "/bin/file8");
  p.modules.finish(requests[0], Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  p.feed(4000, {sample(3100, 100, 3, FLAMED_END_ROWS_PENDING, kStartTicks, kLibrary)});
  const auto again = p.take_requests();
  REQUIRE(again.size() == 1);
  CHECK(again[0].module == requests[0].module);
}

TEST_CASE("a library that is mapped later is entered without a further sample") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7), {sample(20, 100, 3, FLAMED_END_NO_PROCESS)}));
  CHECK(p.found(100, kLibrary) == Found::kNoMapping);
  p.feed(2000, {map(1100, 100, kLibrary, 8)});
  CHECK(p.found(100, kLibrary) == Found::kPending);
  CHECK(p.is_current(100, kStartTicks, 3));
}

TEST_CASE("an exec replaces the mappings, and samples of the program before are recognised") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7), {map(12, 100, kLibrary, 8), sample(20, 100, 3, FLAMED_END_NO_PROCESS)}));
  REQUIRE(p.is_current(100, kStartTicks, 3));
  p.feed(2000, {exec(1100, 100), map(1101, 100, kProgram, 9)});
  CHECK(p.is_current(100, kStartTicks, 4));
  CHECK(p.found(100, kProgram) == Found::kPending);
  CHECK(p.found(100, kLibrary) == Found::kNoMapping);
}

TEST_CASE("an exec within the batch of the first sample counts as well") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7),
                    {sample(20, 100, 3, FLAMED_END_NO_PROCESS), exec(30, 100), map(31, 100, kLibrary, 9)}));
  CHECK(p.is_current(100, kStartTicks, 4));
  CHECK(p.found(100, kProgram) == Found::kNoMapping);
  CHECK(p.found(100, kLibrary) == Found::kPending);
}

TEST_CASE("a sample of another exec than the tables' updates the tables") {
  Pipeline p;
  // /proc already showed the mappings of the program after the exec, so the exec's record changes nothing.
  p.feed(1000, with(program(10, 100, 7), {sample(20, 100, 3, FLAMED_END_NO_PROCESS)}));
  p.feed(2000, {sample(1100, 100, 5, FLAMED_END_NO_PROCESS)});
  CHECK(p.is_current(100, kStartTicks, 5));
}

TEST_CASE("a process that the kernel program did not find in the tables is entered again") {
  Pipeline p;
  p.maps.most_processes = 0;
  p.feed(1000, with(program(10, 100, 7), {sample(20, 100, 3, FLAMED_END_NO_PROCESS)}));
  CHECK(p.maps.processes.empty());
  p.maps.most_processes = 1;
  p.feed(2000, {sample(1100, 100, 3, FLAMED_END_NO_PROCESS)});
  CHECK(p.is_current(100, kStartTicks, 3));
}

TEST_CASE("samples whose walks succeed do not publish the process again") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7), {sample(20, 100, 3, FLAMED_END_NO_PROCESS)}));
  const std::uint32_t first = p.maps.processes.at(100).first;
  p.feed(2000, {sample(1100, 100, 3, FLAMED_END_OUTERMOST), sample(1110, 100, 3, FLAMED_END_ROWS_PENDING)});
  CHECK(p.maps.processes.at(100).first == first);
}

TEST_CASE("a process that ended leaves the unwind tables") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7), {sample(20, 100, 3, FLAMED_END_NO_PROCESS)}));
  REQUIRE(p.maps.processes.size() == 1);
  p.feed(2000, {exit(1100, 100)});
  CHECK(p.maps.processes.empty());
  CHECK(p.publisher.stats().processes == 0);
}

TEST_CASE("a process that began, was sampled and ended within one batch leaves nothing in the tables") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7), {sample(20, 100, 3, FLAMED_END_NO_PROCESS), exit(30, 100)}));
  CHECK(p.maps.processes.empty());
  // Nor does one that becomes known only after its end.
  p.feed(2000, {sample(1100, 101, 3, FLAMED_END_NO_PROCESS)});
  CHECK(p.maps.processes.empty());
}

TEST_CASE("a pid's next process is in the tables, whatever late records of the one before arrive") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7), {sample(20, 100, 3, FLAMED_END_NO_PROCESS), exit(30, 100)}));
  p.feed(2000, with(program(1010, 100, 8), {sample(1020, 100, 3, FLAMED_END_NO_PROCESS, kStartTicks + 90)}));
  CHECK(p.is_current(100, kStartTicks + 90, 3));
  // A late sample of the process before, whose end was reported already.
  p.feed(2500, {sample(2020, 100, 3, FLAMED_END_NO_PROCESS)});
  CHECK(p.is_current(100, kStartTicks + 90, 3));
  p.feed(3000, {exit(2600, 100)});
  CHECK(p.maps.processes.empty());
}

TEST_CASE("kernel threads are not entered") {
  Pipeline p;
  test::FakeProcess thread{2, kStartTicks};
  thread.comm = "kthreadd";
  p.proc.put(thread);
  test::SampleFields fields;
  fields.tgid = 2;
  fields.start_boottime_ns = kStartTicks * ProcessId::kNsPerTick;
  fields.user_end = FLAMED_END_NO_USER_SPACE;
  fields.kernel = {0xffffffff81000000};
  p.feed(1000, {test::sample_record(at(20), fields)});
  CHECK(p.maps.processes.empty());
}

TEST_CASE("a stack that was walked by tables older than the library in it is cut there") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7), {map(12, 100, kLibrary, 8), sample(20, 100, 3, FLAMED_END_NO_PROCESS)}));
  const auto walked = [](std::int64_t ms, std::uint16_t tables) {
    test::SampleFields fields;
    fields.tgid = 100;
    fields.tid = 100;
    fields.start_boottime_ns = kStartTicks * ProcessId::kNsPerTick;
    fields.exec_id = 3;
    fields.flags = FLAMED_WALKED_BY_TABLES;
    fields.tables = tables;
    fields.user = {kLibrary + 0x20, kProgram + 0x100, kProgram + 0x200};
    return test::sample_record(at(ms), fields);
  };
  const auto cut = [&] {
    return p.store.stats().quality.truncated[static_cast<std::size_t>(store::Truncation::kNoMapping)];
  };
  // Before the other library, with it, and with the first one again, which the tables still show.
  const std::uint16_t first = p.edition(100);
  p.feed(2000, {walked(1100, first), map(1200, 100, kLibrary, 9), walked(1300, first), map(1400, 100, kLibrary, 8),
                walked(1500, first), map(1600, 100, kLibrary, 9)});
  CHECK(cut() == 1);
  CHECK(p.store.stats().quality.whole == 2);
  // The tables show it now. The kernel program may have switched to them a moment later.
  const std::uint16_t second = p.edition(100);
  REQUIRE(second != first);
  p.feed(3000, {walked(1999, second), walked(2001, first), walked(2002, second)});
  CHECK(cut() == 2);
  CHECK(p.store.stats().quality.whole == 4);
}

TEST_CASE("tables that do not show a mapping, and still do not later, are published again") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7), {sample(20, 100, 3, FLAMED_END_NO_PROCESS)}));
  const std::uint16_t first = p.edition(100);
  const auto ends_in_program = [&](std::int64_t ms, std::uint16_t tables) {
    test::SampleFields fields;
    fields.tgid = 100;
    fields.tid = 100;
    fields.start_boottime_ns = kStartTicks * ProcessId::kNsPerTick;
    fields.exec_id = 3;
    fields.flags = FLAMED_WALKED_BY_TABLES;
    fields.tables = tables;
    fields.user_end = FLAMED_END_NO_MAPPING;
    fields.user = {kProgram + 0x100};
    return test::sample_record(at(ms), fields);
  };
  // A new edition may be on its way.
  p.feed(1500, {ends_in_program(1400, first)});
  CHECK(p.edition(100) == first);
  p.feed(3000, {ends_in_program(2500, first)});
  const std::uint16_t second = p.edition(100);
  CHECK(second != first);
  // The kernel did not take it, and walks still use the first one. Once a second is enough.
  p.feed(3500, {ends_in_program(3400, first)});
  CHECK(p.edition(100) == second);
  p.feed(5000, {ends_in_program(4500, first), ends_in_program(4600, first)});
  CHECK(p.edition(100) == second + 1);
}

TEST_CASE("a walk that ends outside of all mappings does not publish them again") {
  Pipeline p;
  p.feed(1000, with(program(10, 100, 7), {sample(20, 100, 3, FLAMED_END_NO_PROCESS)}));
  const std::uint16_t first = p.edition(100);
  test::SampleFields fields;
  fields.tgid = 100;
  fields.tid = 100;
  fields.start_boottime_ns = kStartTicks * ProcessId::kNsPerTick;
  fields.exec_id = 3;
  fields.flags = FLAMED_WALKED_BY_TABLES;
  fields.tables = first;
  fields.user_end = FLAMED_END_NO_MAPPING;
  fields.user = {kProgram + 0x100, 0x1234};
  p.feed(4000, {test::sample_record(at(3000), fields)});
  CHECK(p.edition(100) == first);
}

TEST_CASE("after many short processes the tables hold none of them") {
  Pipeline p;
  for (std::int64_t second = 1; second <= 60; ++second) {
    std::vector<Record> records;
    for (std::int32_t i = 0; i < 100; ++i) {
      const std::int64_t ms = second * 1000 - 900 + i * 8;
      const std::uint64_t start_ticks = kStartTicks + static_cast<std::uint64_t>(ms / 10 * 128 + i);
      const std::int32_t pid = 200 + i;
      records = with(with(std::move(records), program(ms, pid, 1000 + static_cast<std::uint64_t>(second))),
                     {sample(ms + 3, static_cast<std::uint32_t>(pid), 1, FLAMED_END_NO_PROCESS, start_ticks)});
      if (i % 4 != 0) records.push_back(exit(ms + 4, pid));
    }
    p.feed(second * 1000, records);
  }
  CHECK(p.maps.processes.size() == 25);
  std::vector<Record> exits;
  for (std::int32_t i = 0; i < 100; ++i) exits.push_back(exit(60'500, 200 + i));
  p.feed(61'000, exits);
  p.feed(62'000, {});
  CHECK(p.maps.processes.empty());
  p.clock.advance_ns(kNsPerSecond);
  p.publisher.retain({});
  CHECK(p.publisher.stats().mappings == 0);
}

}  // namespace
}  // namespace flamed::daemon
