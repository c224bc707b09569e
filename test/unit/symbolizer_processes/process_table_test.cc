// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process_table.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::symbolizer {
namespace {

using test::code_line;
using test::FakeProcess;

constexpr std::int64_t kMs = kNsPerMs;
constexpr std::uint64_t kProgram = 0x400000;  ///< where programs are mapped
constexpr std::uint64_t kLibrary = 0x7f0000000000;

/// The clock stands at 1000 s; times of events are given as milliseconds around it.
struct Fixture {
  static constexpr std::int64_t kStartNs = 1000 * kNsPerSecond;

  [[nodiscard]] static MonotonicTime at(std::int64_t ms) { return {kStartNs + ms * kMs}; }
  void set_clock(std::int64_t ms) { clock.advance_ns(at(ms).ns - clock.monotonic().ns); }

  void map(std::int64_t ms, std::int32_t pid, std::uint64_t start, std::uint64_t inode, const std::string& path,
           std::uint64_t file_offset = 0x1000, std::uint64_t length = 0x10000) {
    table.on_mapping(at(ms), {pid, start, length, file_offset, inode == 0 ? FileKey{} : FileKey{8, 1, inode}, path});
  }
  /// fork and exec as the kernel tells of them.
  void start(std::int64_t ms, std::int32_t pid, const std::string& comm, std::uint64_t inode) {
    table.on_fork(at(ms), pid, 1);
    table.on_exec(at(ms + 1), pid, comm);
    map(ms + 2, pid, kProgram, inode, "/bin/" + comm);
  }
  struct Located {
    StackTrust trust;
    std::vector<Frame> frames;
  };
  Located locate(ProcessId id, std::int64_t ms, std::vector<std::uint64_t> addresses) {
    Located located{};
    located.trust = table.locate(table.resolve(id, at(ms)), at(ms), addresses, located.frames);
    return located;
  }
  /// Path of the module of the first address, and its offset there.
  std::string place(ProcessId id, std::int64_t ms, std::uint64_t address) {
    const Located located = locate(id, ms, {address});
    REQUIRE(located.frames.size() == 1);
    const ModulePtr module = modules.find(located.frames[0].module);
    REQUIRE(module != nullptr);
    char offset[32];
    std::snprintf(offset, sizeof offset, "+%llx", static_cast<unsigned long long>(located.frames[0].offset));
    return module->path + offset;
  }
  std::vector<ProcessId> changed() {
    std::vector<ProcessId> ids;
    table.take_changed([&](const Process& process) { ids.push_back(process.id); });
    return ids;
  }
  std::optional<OpenRequest> next_request() {
    std::stop_source stopped;
    stopped.request_stop();
    return modules.next_request(stopped.get_token());
  }

  test::FakeProc proc;
  ManualClock clock{MonotonicTime{kStartNs}, WallTime{0}};
  ModuleTable modules{100, clock};
  ProcessTable table{modules, clock, proc.path()};
};

FakeProcess shell(std::int32_t pid = 100, std::uint64_t start_ticks = 5000) {
  FakeProcess process{pid, start_ticks};
  process.comm = "sh";
  process.executable = "/bin/sh";
  process.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh") +
                 code_line(kLibrary, kLibrary + 0x10000, 0x28000, 8, "/lib/libc.so.6") +
                 code_line(0x7ffe00000000, 0x7ffe00002000, 0, 0, "[vdso]");
  return process;
}
constexpr ProcessId kShell{100, 5000};

// -- Looking at /proc ------------------------------------------------------------------------------------------------

TEST_CASE("a scan enters the processes that run, and nothing else that stands in /proc") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.proc.put({200, 6000});
  fixture.proc.directory().write("self/stat", "nonsense");
  fixture.proc.directory().write("300/stat", "nonsense");
  fixture.proc.directory().write("12x/stat", test::stat_line({12, 1}));
  fixture.proc.directory().write("uptime", "1 2");
  fixture.table.scan();
  CHECK(fixture.table.running() == 2);
  Process& process = fixture.table.resolve(kShell, fixture.at(1));
  CHECK(process.comm == "sh");
  CHECK(process.executable == "/bin/sh");
  CHECK(process.parent_pid == 1);
  CHECK_FALSE(process.ended);
  CHECK(fixture.place(kShell, 1, kLibrary + 0x123) == "/lib/libc.so.6+28123");
}

TEST_CASE("a scan of a /proc that is not there enters nobody") {
  ManualClock clock{MonotonicTime{0}, WallTime{0}};
  ModuleTable modules(10, clock);
  ProcessTable table(modules, clock, "/nonexistent/proc");
  table.scan();
  CHECK(table.running() == 0);
}

TEST_CASE("a scan leaves zombies out: nobody will tell of their end") {
  Fixture fixture;
  FakeProcess zombie{100, 5000};
  zombie.state = 'Z';
  fixture.proc.put(zombie);
  fixture.table.scan();
  CHECK(fixture.table.running() == 0);
}

TEST_CASE("an unknown process is read from /proc when its first sample comes") {
  Fixture fixture;
  fixture.proc.put(shell());
  CHECK(fixture.place(kShell, 1, kProgram + 0x10) == "/bin/sh+1010");
  CHECK(fixture.table.running() == 1);
}

TEST_CASE("the mark of a deleted executable is not part of its path") {
  Fixture fixture;
  FakeProcess process = shell();
  process.executable = "/bin/sh (deleted)";
  fixture.proc.put(process);
  CHECK(fixture.table.resolve(kShell, fixture.at(1)).executable == "/bin/sh");
  fixture.map(2, 100, 0x500000, 9, "/tmp/plugin.so (deleted)");
  CHECK(fixture.place(kShell, 3, 0x500000) == "/tmp/plugin.so+1000");
}

TEST_CASE("a process that is gone before anything could be read keeps its addresses as they are") {
  Fixture fixture;
  Process& process = fixture.table.resolve({999, 1}, fixture.at(0));
  CHECK(process.ended);
  CHECK(process.id == ProcessId{999, 1});
  const auto located = fixture.locate({999, 1}, 0, {0x401000, 0x402000});
  CHECK(located.trust == StackTrust::kNoMaps);
  REQUIRE(located.frames.size() == 2);
  CHECK(located.frames[0].offset == 0x401000);
  CHECK(located.frames[1].offset == 0x401fff);
  CHECK(fixture.modules.find(located.frames[0].module)->path == "[unmapped]");
  CHECK(fixture.modules.find(located.frames[0].module)->owner == ProcessId{999, 1});
}

TEST_CASE("an address that is none of user space cuts the stack also where no mappings are known") {
  Fixture fixture;
  const auto located = fixture.locate({999, 1}, 0, {0x401000, 0xffff800000000000, 0x402000});
  CHECK(located.trust == StackTrust::kCut);
  CHECK(located.frames.size() == 1);
}

// -- Following events ------------------------------------------------------------------------------------------------

TEST_CASE("a process that forks, execs and maps is known without a look at /proc") {
  Fixture fixture;
  fixture.start(10, 100, "cc1", 7);
  fixture.map(13, 100, kLibrary, 8, "/lib/libc.so.6", 0x28000);
  Process& process = fixture.table.resolve(kShell, fixture.at(20));
  CHECK(process.comm == "cc1");
  CHECK(process.executable == "/bin/cc1");
  CHECK(process.parent_pid == 1);
  CHECK(fixture.place(kShell, 20, kProgram + 0x10) == "/bin/cc1+1010");
  CHECK(fixture.place(kShell, 20, kLibrary) == "/lib/libc.so.6+28000");
}

TEST_CASE("a process whose FORK was missed is known from its exec on") {
  Fixture fixture;
  fixture.table.on_exec(fixture.at(1), 100, "cc1");
  fixture.map(2, 100, kProgram, 7, "/bin/cc1");
  CHECK(fixture.place(kShell, 3, kProgram) == "/bin/cc1+1000");
  CHECK(fixture.table.resolve(kShell, fixture.at(3)).executable == "/bin/cc1");
}

TEST_CASE("a child has its parent's mappings until either maps something") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.table.on_fork(fixture.at(10), 101, 100);
  constexpr ProcessId kChild{101, 5001};
  CHECK(fixture.place(kChild, 11, kProgram) == "/bin/sh+1000");
  CHECK(fixture.table.resolve(kChild, fixture.at(11)).comm == "sh");
  CHECK(fixture.table.resolve(kChild, fixture.at(11)).executable == "/bin/sh");
  CHECK(fixture.table.resolve(kChild, fixture.at(11)).maps == fixture.table.resolve(kShell, fixture.at(11)).maps);

  fixture.map(12, 100, kLibrary, 8, "/lib/parent.so");
  fixture.map(12, 101, kLibrary, 9, "/lib/child.so");
  CHECK(fixture.place(kShell, 13, kLibrary) == "/lib/parent.so+1000");
  CHECK(fixture.place(kChild, 13, kLibrary) == "/lib/child.so+1000");
  CHECK(fixture.place(kChild, 13, kProgram) == "/bin/sh+1000");
}

TEST_CASE("a new thread is no new process") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.table.on_fork(fixture.at(10), 100, 100);
  CHECK(fixture.table.running() == 1);
  CHECK(fixture.place(kShell, 11, kProgram) == "/bin/sh+1000");
}

TEST_CASE("exec forgets what was mapped before, and the program mapped first is the new executable") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(5, 100, kLibrary, 8, "/lib/libc.so.6");
  fixture.table.on_exec(fixture.at(10), 100, "ls");
  fixture.map(11, 100, kProgram, 20, "/bin/ls", 0x4000);
  fixture.map(12, 100, 0x500000, 21, "/lib/ld.so");
  Process& process = fixture.table.resolve(kShell, fixture.at(13));
  CHECK(process.comm == "ls");
  CHECK(process.executable == "/bin/ls");
  CHECK(fixture.place(kShell, 13, kProgram) == "/bin/ls+4000");
  CHECK(process.maps->find(kLibrary) == nullptr);
}

TEST_CASE("the exec of a child leaves its parent as it was") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.table.on_fork(fixture.at(10), 101, 100);
  fixture.table.on_exec(fixture.at(11), 101, "ls");
  fixture.map(12, 101, kProgram, 20, "/bin/ls");
  CHECK(fixture.place(kShell, 13, kProgram) == "/bin/sh+1000");
  CHECK(fixture.table.resolve(kShell, fixture.at(13)).comm == "sh");
}

TEST_CASE("events from before the look at /proc change nothing") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.table.on_fork(fixture.at(-30), 100, 1);
  fixture.table.on_exec(fixture.at(-20), 100, "old");
  fixture.map(-10, 100, kProgram, 99, "/bin/old");
  CHECK(fixture.place(kShell, 1, kProgram) == "/bin/sh+1000");
  CHECK(fixture.table.resolve(kShell, fixture.at(1)).comm == "sh");
  CHECK(fixture.table.ended() == 0);
}

TEST_CASE("the end of a pid's earlier owner does not end the one that was seen alive since") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.table.on_exit(fixture.at(-1), 100, 100);
  CHECK(fixture.table.running() == 1);
  fixture.table.on_exit(fixture.at(1), 100, 100);
  CHECK(fixture.table.running() == 0);
}

TEST_CASE("events from after the look at /proc count") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.map(10, 100, kProgram, 99, "/bin/new");
  CHECK(fixture.place(kShell, 11, kProgram) == "/bin/new+1000");
}

TEST_CASE("a mapping of an unknown process makes it be read from /proc") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.map(-1, 100, 0x900000, 30, "/lib/seen.so");
  CHECK(fixture.table.running() == 1);
  CHECK(fixture.place(kShell, 1, kProgram) == "/bin/sh+1000");
}

TEST_CASE("one mapping of a process whose others are not known does not pass for all of them") {
  Fixture fixture;
  fixture.table.on_fork(fixture.at(1), 100, 99);
  fixture.map(2, 100, 0x900000, 30, "/lib/plugin.so");
  FakeProcess process = shell();
  process.maps += code_line(0x900000, 0x910000, 0x1000, 30, "/lib/plugin.so");
  fixture.proc.put(process);
  fixture.set_clock(3);
  // The program counter is in known code, so that alone gives no reason to look.
  CHECK(fixture.locate(kShell, 4, {0x900000, kProgram + 0x10}).trust == StackTrust::kAll);
}

TEST_CASE("a mapping whose end would lie beyond the address space is ignored") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(5, 100, ~0ULL - 0xfff, 30, "/lib/odd.so", 0, 0x2000);
  CHECK(fixture.table.resolve(kShell, fixture.at(6)).maps->mappings().size() == 1);
}

TEST_CASE("a process that goes on mapping at new addresses is read again before its mappings fill the memory") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  static_cast<void>(fixture.table.resolve(kShell, fixture.at(1)));
  for (std::uint64_t i = 0; i < 65'600; ++i) {
    // Downwards would move all of the set's memory each time; the kernel mostly maps downwards, but slower than this.
    fixture.map(2000, 100, 0x7f1000000000 + i * 0x10000, 0, "//anon");
  }
  CHECK(fixture.table.resolve(kShell, fixture.at(2001)).maps->mappings().size() < 1000);
  CHECK(fixture.place(kShell, 2002, kProgram) == "/bin/sh+1000");
}

// -- Changes to tell -------------------------------------------------------------------------------------------------

TEST_CASE("changes are told of processes that were sampled, once") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.start(0, 200, "other", 8);
  CHECK(fixture.changed().empty());
  fixture.table.resolve(kShell, fixture.at(5)).sampled = true;
  fixture.table.on_comm(100, "sh");
  CHECK(fixture.changed().empty());
  fixture.table.on_comm(100, "renamed");
  fixture.table.on_comm(100, "again");
  fixture.table.on_comm(200, "renamed");
  CHECK(fixture.changed() == std::vector<ProcessId>{kShell});
  CHECK(fixture.changed().empty());
  CHECK(fixture.table.resolve(kShell, fixture.at(6)).comm == "again");
  fixture.table.on_exit(fixture.at(7), 100, 100);
  CHECK(fixture.changed() == std::vector<ProcessId>{kShell});
}

TEST_CASE("a comm of an unknown process is of no use") {
  Fixture fixture;
  fixture.table.on_comm(100, "x");
  CHECK(fixture.table.running() == 0);
}

// -- Lost events -----------------------------------------------------------------------------------------------------

TEST_CASE("after events were lost, a process is read again when it is next sampled") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  static_cast<void>(fixture.place(kShell, 5, kProgram));
  FakeProcess now = shell();
  now.comm = "ls";
  now.executable = "/bin/ls";
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x3000, 50, "/bin/ls");
  fixture.proc.put(now);
  fixture.set_clock(50);
  fixture.table.resolve(kShell, fixture.at(40)).sampled = true;
  fixture.table.on_events_lost(fixture.at(0));
  CHECK(fixture.place(kShell, 60, kProgram) == "/bin/ls+3000");
  Process& process = fixture.table.resolve(kShell, fixture.at(60));
  CHECK(process.comm == "ls");
  CHECK(process.executable == "/bin/ls");
  CHECK(fixture.changed() == std::vector<ProcessId>{kShell});
}

TEST_CASE("after events were lost, what was known of a process that is gone is still better than nothing") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.table.on_events_lost(fixture.at(0));
  CHECK(fixture.place(kShell, 5, kProgram) == "/bin/sh+1000");
  CHECK(fixture.locate(kShell, 5, {kProgram}).trust == StackTrust::kAll);
}

TEST_CASE("after events were lost, one new mapping does not make the others forgotten") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.table.on_events_lost(fixture.at(0));
  fixture.map(5, 100, 0x900000, 30, "/lib/plugin.so");
  const auto located = fixture.locate(kShell, 6, {0x900000, kProgram + 0x10});
  CHECK(located.trust == StackTrust::kAll);
  CHECK(located.frames.size() == 2);
}

TEST_CASE("a look at /proc does not place samples that are older than it where events tell otherwise") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(3, 100, kLibrary, 8, "/lib/first.so");
  FakeProcess now = shell();
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh") +
             code_line(kLibrary, kLibrary + 0x10000, 0x1000, 9, "/lib/second.so") +
             code_line(0x900000, 0x910000, 0, 31, "/lib/untold.so");
  fixture.proc.put(now);
  fixture.set_clock(2000);
  CHECK(fixture.place(kShell, 1500, 0x900000) == "/lib/untold.so+0");
  CHECK(fixture.place(kShell, 1600, kLibrary) == "/lib/first.so+1000");
  fixture.table.on_fork(fixture.at(1650), 101, 100);
  fixture.map(1700, 100, kLibrary, 9, "/lib/second.so");
  CHECK(fixture.place(kShell, 1800, kLibrary) == "/lib/second.so+1000");
  CHECK(fixture.place({101, 5001}, 1800, kLibrary) == "/lib/first.so+1000");
  CHECK(fixture.place(kShell, 2000, kLibrary) == "/lib/second.so+1000");
  CHECK(fixture.table.resolve(kShell, fixture.at(2000)).earlier_maps == nullptr);
}

TEST_CASE("an exec that a look at /proc has seen already still comes between the samples before and after it") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(3, 100, kLibrary, 8, "/lib/first.so");
  static_cast<void>(fixture.place(kShell, 5, kProgram));
  FakeProcess now = shell();
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 20, "/bin/ls");
  fixture.proc.put(now);
  fixture.set_clock(2000);
  CHECK(fixture.place(kShell, 1500, 0x1234) == "[unmapped]+1234");
  CHECK(fixture.place(kShell, 1510, kProgram) == "/bin/sh+1000");
  fixture.table.on_exec(fixture.at(1600), 100, "ls");
  fixture.map(1601, 100, kProgram, 20, "/bin/ls");
  CHECK(fixture.place(kShell, 1700, kProgram) == "/bin/ls+1000");
}

TEST_CASE("while events were lost, only places that never changed hands are believed") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(3, 100, kLibrary, 8, "/lib/first.so");
  fixture.map(4, 100, kLibrary, 9, "/lib/second.so");
  static_cast<void>(fixture.place(kShell, 5, kProgram));
  FakeProcess now = shell();
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh") +
             code_line(kLibrary, kLibrary + 0x10000, 0x1000, 9, "/lib/second.so");
  fixture.proc.put(now);
  fixture.set_clock(2000);
  fixture.table.on_events_lost(fixture.at(1000));
  CHECK(fixture.place(kShell, 900, kLibrary) == "/lib/second.so+1000");
  // Another library may have been there in between, as it was before.
  const auto inside = fixture.locate(kShell, 1500, {kLibrary, kProgram + 0x20});
  CHECK(inside.trust == StackTrust::kDoubt);
  CHECK(inside.frames.size() == 1);
  CHECK(fixture.modules.find(inside.frames[0].module)->path == "[unmapped]");
  const auto through = fixture.locate(kShell, 1500, {kProgram, kLibrary + 0x20, kProgram + 0x20});
  CHECK(through.trust == StackTrust::kDoubt);
  CHECK(through.frames.size() == 1);
  CHECK(fixture.locate(kShell, 1500, {kProgram, kProgram + 0x20}).trust == StackTrust::kAll);
  CHECK(fixture.locate(kShell, 2000, {kLibrary, kProgram + 0x20}).trust == StackTrust::kAll);
}

TEST_CASE("while events were lost, what /proc shows in another's place is not believed of samples from before") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(3, 100, kLibrary, 8, "/lib/first.so");
  static_cast<void>(fixture.place(kShell, 5, kProgram));
  FakeProcess now = shell();
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh") +
             code_line(kLibrary, kLibrary + 0x10000, 0x1000, 9, "/lib/second.so");
  fixture.proc.put(now);
  fixture.set_clock(2000);
  fixture.table.on_events_lost(fixture.at(1000));
  CHECK(fixture.locate(kShell, 1500, {kLibrary}).trust == StackTrust::kDoubt);
  CHECK(fixture.place(kShell, 2001, kLibrary) == "/lib/second.so+1000");
}

TEST_CASE("after events were lost, places that changed hands in a process that is gone are not believed") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(3, 100, kLibrary, 8, "/lib/first.so");
  fixture.map(4, 100, kLibrary, 9, "/lib/second.so");
  static_cast<void>(fixture.place(kShell, 5, kProgram));
  fixture.table.on_events_lost(fixture.at(10));
  CHECK(fixture.locate(kShell, 20, {kLibrary}).trust == StackTrust::kDoubt);
  CHECK(fixture.locate(kShell, 20, {kProgram}).trust == StackTrust::kAll);
}

TEST_CASE("a process that events should have told of is believed from the look at /proc on") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.set_clock(2000);
  CHECK(fixture.locate(kShell, 1500, {kProgram}).trust == StackTrust::kDoubt);
  CHECK(fixture.locate(kShell, 2000, {kProgram}).trust == StackTrust::kAll);
}

TEST_CASE("where nobody tells of events, what /proc shows is believed of earlier samples too") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.table.on_no_events();
  FakeProcess now = shell();
  now.maps = code_line(kLibrary, kLibrary + 0x10000, 0x1000, 9, "/lib/second.so");
  fixture.proc.put(now);
  fixture.set_clock(2000);
  CHECK(fixture.place(kShell, 1500, kLibrary) == "/lib/second.so+1000");
}

TEST_CASE("editions of tables are found by their number, until others took their place long ago") {
  TableEditions editions;
  std::vector<std::shared_ptr<const MappingSet>> maps;
  std::vector<std::uint16_t> numbers;
  for (int i = 0; i < 20; ++i) {
    maps.push_back(std::make_shared<const MappingSet>());
    editions.add(maps.back(), {i * kMs});
    numbers.push_back(editions.newest());
  }
  CHECK(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
  CHECK(editions.find(numbers[3]) == nullptr);
  for (std::size_t i = 4; i < 20; ++i) CHECK(editions.find(numbers[i]) == maps[i].get());
  editions.forget_replaced({18 * kMs});
  CHECK(editions.find(numbers[17]) == nullptr);
  CHECK(editions.find(numbers[18]) == maps[18].get());
  editions.forget_replaced({1000 * kMs});
  CHECK(editions.find(numbers[18]) == nullptr);
  CHECK(editions.find(numbers[19]) == maps[19].get());
}

TEST_CASE("after events were lost, processes that are no more are ended") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.proc.put({200, 6000});
  fixture.table.scan();
  fixture.table.resolve(kShell, fixture.at(1)).sampled = true;
  fixture.proc.remove(100);
  fixture.table.purge(fixture.at(2));
  CHECK(fixture.table.running() == 2);

  fixture.table.on_events_lost(fixture.at(0));
  fixture.table.purge(fixture.at(3));
  CHECK(fixture.table.running() == 1);
  CHECK(fixture.table.ended() == 1);
  CHECK(fixture.changed() == std::vector<ProcessId>{kShell});
  CHECK(fixture.place(kShell, 4, kProgram) == "/bin/sh+1000");
}

// -- Ends and reused pids --------------------------------------------------------------------------------------------

TEST_CASE("a late sample of an ended process finds its mappings, until the time for that is over") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  static_cast<void>(fixture.table.resolve(kShell, fixture.at(5)));
  fixture.table.on_exit(fixture.at(10), 100, 100);
  CHECK(fixture.table.running() == 0);
  CHECK(fixture.place(kShell, 9, kProgram) == "/bin/sh+1000");
  CHECK(fixture.table.resolve(kShell, fixture.at(9)).ended);
  fixture.table.purge(fixture.at(3009));
  CHECK(fixture.table.ended() == 1);
  fixture.table.purge(fixture.at(3010));
  CHECK(fixture.table.ended() == 0);
}

TEST_CASE("a process that ended before its first sample came is found by its pid") {
  Fixture fixture;
  fixture.start(0, 100, "true", 7);
  fixture.table.on_exit(fixture.at(10), 100, 100);
  CHECK(fixture.place(kShell, 9, kProgram) == "/bin/true+1000");
  CHECK(fixture.table.resolve(kShell, fixture.at(9)).id == kShell);
  CHECK(fixture.table.ended() == 1);
}

TEST_CASE("a process goes on without the thread that it began with, until the last thread ends") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  static_cast<void>(fixture.place(kShell, 5, kProgram));
  fixture.table.on_fork(fixture.at(6), 100, 100);
  FakeProcess zombie = shell();
  zombie.state = 'Z';
  zombie.maps.clear();
  fixture.proc.put(zombie);
  const std::string maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh");
  fixture.proc.directory().write("100/task/100/maps", "");
  const std::string thread = fixture.proc.directory().write("100/task/101/maps", maps);

  fixture.table.on_exit(fixture.at(10), 100, 100);
  CHECK(fixture.table.running() == 1);
  CHECK_FALSE(fixture.table.resolve(kShell, fixture.at(20)).ended);
  CHECK(fixture.place(kShell, 20, kProgram) == "/bin/sh+1000");
  // Also where the mappings have to be read again.
  fixture.table.on_events_lost(fixture.at(30));
  fixture.set_clock(40);
  CHECK(fixture.place(kShell, 50, kProgram) == "/bin/sh+1000");
  CHECK_FALSE(fixture.table.resolve(kShell, fixture.at(50)).stale);

  std::filesystem::remove_all(std::filesystem::path(thread).parent_path());
  fixture.table.on_exit(fixture.at(60), 100, 101);
  CHECK(fixture.table.running() == 0);
  CHECK(fixture.table.resolve(kShell, fixture.at(55)).last_seen == fixture.at(60));
}

TEST_CASE("the end of any other thread ends nobody") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.table.on_fork(fixture.at(6), 100, 100);
  fixture.table.on_exit(fixture.at(10), 100, 101);
  CHECK(fixture.table.running() == 1);
}

TEST_CASE("a scan enters a process whose first thread has ended while others go on") {
  Fixture fixture;
  FakeProcess zombie = shell();
  zombie.state = 'Z';
  zombie.maps.clear();
  fixture.proc.put(zombie);
  fixture.proc.directory().write("100/task/101/maps", code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh"));
  fixture.table.scan();
  CHECK(fixture.place(kShell, 1, kProgram) == "/bin/sh+1000");
}

TEST_CASE("the end of an unknown process is nothing") {
  Fixture fixture;
  fixture.table.on_exit(fixture.at(10), 100, 100);
  CHECK(fixture.table.ended() == 0);
}

TEST_CASE("a pid that comes back is another process, told apart by its start") {
  Fixture fixture;
  fixture.start(0, 100, "first", 7);
  static_cast<void>(fixture.table.resolve({100, 5000}, fixture.at(5)));
  fixture.table.on_exit(fixture.at(10), 100, 100);
  fixture.start(20, 100, "second", 8);
  CHECK(fixture.place({100, 5002}, 30, kProgram) == "/bin/second+1000");
  CHECK(fixture.place({100, 5000}, 9, kProgram) == "/bin/first+1000");
}

TEST_CASE("a fork to a pid whose end was missed ends its old owner") {
  Fixture fixture;
  fixture.start(0, 100, "first", 7);
  static_cast<void>(fixture.table.resolve({100, 5000}, fixture.at(5)));
  fixture.start(20, 100, "second", 8);
  CHECK(fixture.table.running() == 1);
  CHECK(fixture.table.ended() == 1);
  CHECK(fixture.place({100, 5002}, 30, kProgram) == "/bin/second+1000");
}

TEST_CASE("a sample with a later start shows that the pid has a new owner") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  FakeProcess next = shell(100, 7000);
  next.comm = "next";
  next.maps = code_line(kProgram, kProgram + 0x1000, 0, 60, "/bin/next");
  fixture.proc.put(next);
  CHECK(fixture.place({100, 7000}, 5, kProgram) == "/bin/next+0");
  CHECK(fixture.table.resolve(kShell, fixture.at(5)).ended);
}

TEST_CASE("a sample with an earlier start leaves the pid's present owner alone") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.table.resolve(kShell, fixture.at(4)).sampled = true;
  Process& late = fixture.table.resolve({100, 4000}, fixture.at(5));
  CHECK(late.ended);
  CHECK(late.maps == nullptr);
  CHECK(fixture.table.running() == 1);
  CHECK_FALSE(fixture.table.resolve(kShell, fixture.at(6)).ended);
  CHECK(fixture.table.resolve(kShell, fixture.at(6)).sampled);
  CHECK(fixture.changed().empty());
}

TEST_CASE("what /proc shows of a pid's next owner is not taken for the one that was sampled") {
  Fixture fixture;
  fixture.proc.put(shell(100, 7000));
  Process& gone = fixture.table.resolve({100, 5000}, fixture.at(5));
  CHECK(gone.ended);
  CHECK(gone.maps == nullptr);

  // Likewise when a process that is known is looked at once more.
  fixture.start(10, 200, "first", 70);
  static_cast<void>(fixture.place({200, 8000}, 20, kProgram));
  FakeProcess next = shell(200, 9000);
  fixture.proc.put(next);
  CHECK(fixture.locate({200, 8000}, 2000, {kLibrary}).trust == StackTrust::kAll);
  CHECK(fixture.place({200, 8000}, 2000, kLibrary) == "[unmapped]+7f0000000000");
  CHECK(fixture.place({200, 8000}, 2000, kProgram) == "/bin/first+1000");
}

// -- Addresses to frames ---------------------------------------------------------------------------------------------

TEST_CASE("callers are placed one byte before their return address, the innermost where it stands") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(3, 100, kLibrary, 8, "/lib/libc.so.6", 0);
  // The second's call is the last instruction of the program, so that its return address is not in it any more.
  const auto located = fixture.locate(kShell, 10, {kLibrary, kProgram + 0x10000, kLibrary + 0x20});
  CHECK(located.trust == StackTrust::kAll);
  REQUIRE(located.frames.size() == 3);
  CHECK(located.frames[0].offset == 0);
  CHECK(located.frames[1].offset == 0x1000 + 0xffff);
  CHECK(located.frames[2].offset == 0x1f);
  CHECK(located.frames[0].module == located.frames[2].module);
  CHECK(located.frames[0].module != located.frames[1].module);
}

TEST_CASE("a stack is cut at an address outside of known code") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  const auto located = fixture.locate(kShell, 10, {kProgram, kProgram + 0x20, 0x1234, kProgram + 0x30});
  CHECK(located.trust == StackTrust::kCut);
  CHECK(located.frames.size() == 2);
  CHECK(fixture.locate(kShell, 10, {kProgram, 0}).trust == StackTrust::kCut);
}

TEST_CASE("a program counter outside of known code makes /proc be read, at most once a second") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  FakeProcess now = shell();
  fixture.proc.put(now);
  CHECK(fixture.place(kShell, 10, kLibrary) == "/lib/libc.so.6+28000");

  now.maps += code_line(0x900000, 0x901000, 0, 31, "/lib/late.so");
  fixture.proc.put(now);
  fixture.set_clock(1009);
  CHECK(fixture.place(kShell, 1009, 0x900000) == "[unmapped]+900000");
  CHECK(fixture.place(kShell, 1010, 0x900000) == "/lib/late.so+0");
}

TEST_CASE("an unmapped program counter is kept, and its callers with it") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  const auto located = fixture.locate(kShell, 10, {0x1234, kProgram + 0x20});
  CHECK(located.trust == StackTrust::kAll);
  REQUIRE(located.frames.size() == 2);
  CHECK(fixture.modules.find(located.frames[0].module)->path == "[unmapped]");
  CHECK(located.frames[0].offset == 0x1234);
}

TEST_CASE("code without a file belongs to its process, by address") {
  Fixture fixture;
  fixture.start(0, 100, "java", 7);
  fixture.map(5, 100, 0x900000, 0, "//anon", 0x77000);
  fixture.map(5, 100, 0xa00000, 0, "[heap]", 0);
  const auto located = fixture.locate(kShell, 10, {0x900010, 0xa00021});
  CHECK(located.trust == StackTrust::kAll);
  REQUIRE(located.frames.size() == 2);
  CHECK(located.frames[0].offset == 0x900010);
  CHECK(located.frames[1].offset == 0xa00020);
  CHECK(located.frames[0].module == located.frames[1].module);
  CHECK(fixture.modules.find(located.frames[0].module)->kind == ModuleKind::kAnonymous);
  CHECK(fixture.modules.find(located.frames[0].module)->owner == kShell);
}

TEST_CASE("the vdso is one module for all processes, counted from its start") {
  Fixture fixture;
  fixture.start(0, 100, "a", 7);
  fixture.map(5, 100, 0x7ffe00000000, 0, "[vdso]", 0x1234000, 0x2000);
  const auto located = fixture.locate(kShell, 10, {0x7ffe00000a10});
  REQUIRE(located.frames.size() == 1);
  CHECK(located.frames[0] == Frame{kVdsoModule, 0xa10});
}

TEST_CASE("a stack without addresses is whole, and costs no look at /proc") {
  Fixture fixture;
  FakeProcess kernel_thread{2, 3};
  kernel_thread.comm = "kthreadd";
  kernel_thread.parent_pid = 0;
  fixture.proc.put(kernel_thread);
  const auto located = fixture.locate({2, 3}, 5, {});
  CHECK(located.trust == StackTrust::kAll);
  CHECK(located.frames.empty());
  Process& process = fixture.table.resolve({2, 3}, fixture.at(5));
  CHECK(process.comm == "kthreadd");
  CHECK(process.executable.empty());
  REQUIRE(process.maps != nullptr);
  CHECK(process.maps->mappings().empty());
}

TEST_CASE("a running process whose mappings can't be read keeps its addresses") {
  Fixture fixture;
  fixture.proc.directory().write("100/stat", test::stat_line(shell()));
  const auto located = fixture.locate(kShell, 5, {kProgram, kProgram + 0x10});
  CHECK(located.trust == StackTrust::kNoMaps);
  CHECK(located.frames.size() == 2);
  CHECK(fixture.table.resolve(kShell, fixture.at(5)).comm == "sh");
}

// -- Modules ---------------------------------------------------------------------------------------------------------

TEST_CASE("the file of a module is asked for when a sample is in it, with the place where it is mapped") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  CHECK_FALSE(fixture.next_request());
  static_cast<void>(fixture.locate(kShell, 10, {kProgram, kProgram + 0x10}));
  const auto request = fixture.next_request();
  REQUIRE(request);
  CHECK(request->pid == 100);
  CHECK(request->parent_pid == 1);
  CHECK(request->path == "/bin/sh");
  CHECK(request->file == FileKey{8, 1, 7});
  CHECK(request->start == kProgram);
  CHECK(request->end == kProgram + 0x10000);
  CHECK_FALSE(fixture.next_request());
}

TEST_CASE("a file that could not be opened is asked for again as samples go on") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  static_cast<void>(fixture.locate(kShell, 10, {kProgram}));
  auto request = fixture.next_request();
  REQUIRE(request);
  fixture.modules.finish(*request, Error("gone"));
  fixture.set_clock(10'009);
  static_cast<void>(fixture.locate(kShell, 10'009, {kProgram}));
  CHECK_FALSE(fixture.next_request());
  fixture.set_clock(10'010);
  static_cast<void>(fixture.locate(kShell, 10'010, {kProgram}));
  CHECK(fixture.next_request());
}

TEST_CASE("what names JIT code is asked for when a sample was in memory without a file, and once a second") {
  Fixture fixture;
  fixture.start(0, 200, "node", 8);
  fixture.map(5, 200, 0x900000, 0, "//anon");
  static_cast<void>(fixture.locate({200, 6000}, 6, {kProgram}));
  while (const auto request = fixture.next_request()) CHECK_FALSE(request->jit_owner);
  static_cast<void>(fixture.locate({200, 6000}, 7, {0x900000}));
  static_cast<void>(fixture.locate({200, 6000}, 8, {0x900000}));
  const auto request = fixture.next_request();
  REQUIRE(request);
  CHECK(request->jit_owner == ProcessId{200, 6000});
  CHECK_FALSE(fixture.next_request());
}

TEST_CASE("memory that .NET has mapped twice to write code into it is memory without a file") {
  Fixture fixture;
  fixture.start(0, 200, "dotnet", 8);
  fixture.map(5, 200, 0x900000, 77, "/memfd:doublemapper (deleted)");
  CHECK(fixture.place({200, 6000}, 6, 0x900123) == "[anon]+900123");
  fixture.map(7, 200, 0xa00000, 78, "/memfd:program (deleted)");
  CHECK(fixture.place({200, 6000}, 8, 0xa00123) == "/memfd:program+1123");
}

TEST_CASE("the modules of all processes are named, also of those that ended a moment ago") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.start(0, 200, "ls", 8);
  fixture.map(5, 200, 0x900000, 0, "//anon");
  const Frame anonymous = fixture.locate({200, 6000}, 6, {0x900000}).frames.at(0);
  const Frame program = fixture.locate(kShell, 6, {kProgram}).frames.at(0);
  const Frame unmapped = fixture.locate(kShell, 6, {0x10}).frames.at(0);
  fixture.table.on_exit(fixture.at(10), 200, 200);
  std::vector<ModuleId> modules;
  fixture.table.append_mapped_modules(modules);
  for (const ModuleId module : {anonymous.module, program.module, unmapped.module}) {
    CHECK(std::count(modules.begin(), modules.end(), module) == 1);
  }
}

}  // namespace
}  // namespace flamed::symbolizer
