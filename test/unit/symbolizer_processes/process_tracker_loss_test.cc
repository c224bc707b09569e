// SPDX-License-Identifier: Apache-2.0
//
// How the table of processes handles lost events, and how late samples find the mappings of their time.
#include "symbolizer/process/process_tracker.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "test/catch.h"
#include "test/unit/symbolizer_processes/process_tracker_fixture.h"

namespace flamed::symbolizer {
namespace {

using Fixture = test::ProcessTableFixture;
using test::code_line;
using test::FakeProcess;
using test::kLibrary;
using test::kProgram;
using test::kShell;
using test::shell;

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
  fixture.table.on_events_lost(fixture.at(0), fixture.at(0));
  CHECK(fixture.place(kShell, 60, kProgram) == "/bin/ls+3000");
  Process& process = fixture.table.resolve(kShell, fixture.at(60));
  CHECK(process.comm == "ls");
  CHECK(process.executable == "/bin/ls");
  CHECK(fixture.changed() == std::vector<ProcessId>{kShell});
}

TEST_CASE("skipped events of one process do not affect others") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.start(0, 200, "cat", 7);
  FakeProcess now = shell();
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x3000, 50, "/bin/ls");
  fixture.proc.put(now);
  fixture.set_clock(1500);
  fixture.table.on_events_lost(100, fixture.at(1000));
  fixture.table.on_events_lost(300, fixture.at(1000));  // an unknown process
  CHECK(fixture.place(kShell, 900, kProgram) == "/bin/sh+1000");
  CHECK(fixture.place(kShell, 1600, kProgram) == "/bin/ls+3000");
  CHECK(fixture.place({200, 200}, 1600, kProgram) == "/bin/cat+1000");
}

TEST_CASE("a process whose events are always skipped is read again at most once a second") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  const auto with_library = [&](std::uint64_t inode, const char* path) {
    FakeProcess process = shell();
    process.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh") +
                   code_line(kLibrary, kLibrary + 0x10000, 0, inode, path);
    fixture.proc.put(process);
  };
  with_library(8, "/lib/first.so");
  fixture.set_clock(1000);
  fixture.table.on_events_lost(100, fixture.at(900));
  CHECK(fixture.place(kShell, 1001, kLibrary) == "/lib/first.so+0");
  with_library(9, "/lib/second.so");
  for (std::int64_t ms = 1100; ms < 2000; ms += 100) {
    fixture.set_clock(ms);
    fixture.table.on_events_lost(100, fixture.at(ms - 50));
    CHECK(fixture.place(kShell, ms, kLibrary) == "/lib/first.so+0");
  }
  fixture.set_clock(2100);
  fixture.table.on_events_lost(100, fixture.at(2050));
  // It may have been the second one already.
  CHECK(fixture.locate(kShell, 2060, {kLibrary}).trust == StackTrust::kDoubt);
  CHECK(fixture.locate(kShell, 2060, {kProgram}).trust == StackTrust::kAll);
  CHECK(fixture.place(kShell, 2101, kLibrary) == "/lib/second.so+0");
}

TEST_CASE("after events were lost, the old mappings of an ended process are still used") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.table.on_events_lost(fixture.at(0), fixture.at(0));
  CHECK(fixture.place(kShell, 5, kProgram) == "/bin/sh+1000");
  CHECK(fixture.locate(kShell, 5, {kProgram}).trust == StackTrust::kAll);
}

TEST_CASE("after events were lost, one new mapping does not discard the others") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.table.on_events_lost(fixture.at(0), fixture.at(0));
  fixture.map(5, 100, 0x900000, 30, "/lib/plugin.so");
  const auto located = fixture.locate(kShell, 6, {0x900000, kProgram + 0x10});
  CHECK(located.trust == StackTrust::kAll);
  CHECK(located.frames.size() == 2);
}

TEST_CASE("a read of /proc does not resolve older samples if events contradict it") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(3, 100, kLibrary, 8, "/lib/first.so");
  FakeProcess now = shell();
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh") +
             code_line(kLibrary, kLibrary + 0x10000, 0x1000, 9, "/lib/second.so") +
             code_line(0x900000, 0x910000, 0, 31, "/lib/untold.so");
  fixture.proc.put(now);
  fixture.set_clock(2000);
  CHECK(fixture.locate(kShell, 1500, {0x900000}).trust == StackTrust::kDoubt);
  CHECK(fixture.place(kShell, 1600, kLibrary) == "/lib/first.so+1000");
  fixture.table.on_fork(fixture.at(1650), 101, 100);
  fixture.map(1700, 100, kLibrary, 9, "/lib/second.so");
  CHECK(fixture.place(kShell, 1800, kLibrary) == "/lib/second.so+1000");
  CHECK(fixture.place({101, 5001}, 1800, kLibrary) == "/lib/first.so+1000");
  CHECK(fixture.place(kShell, 2000, kLibrary) == "/lib/second.so+1000");
  CHECK(fixture.place(kShell, 2000, 0x900000) == "/lib/untold.so+0");
  CHECK(fixture.table.resolve(kShell, fixture.at(2000)).earlier_maps == nullptr);
}

TEST_CASE("an exec that a read of /proc already covered still separates the samples before and after it") {
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

TEST_CASE("while events were lost, only places with a single file are trusted") {
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
  fixture.table.on_events_lost(fixture.at(1000), fixture.at(1000));
  CHECK(fixture.place(kShell, 900, kLibrary) == "/lib/second.so+1000");
  // Another library may have been mapped there in between, as before.
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

TEST_CASE("while events were lost, a file that /proc shows in another's place is not used for earlier samples") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(3, 100, kLibrary, 8, "/lib/first.so");
  static_cast<void>(fixture.place(kShell, 5, kProgram));
  FakeProcess now = shell();
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh") +
             code_line(kLibrary, kLibrary + 0x10000, 0x1000, 9, "/lib/second.so");
  fixture.proc.put(now);
  fixture.set_clock(2000);
  fixture.table.on_events_lost(fixture.at(1000), fixture.at(1000));
  CHECK(fixture.locate(kShell, 1500, {kLibrary}).trust == StackTrust::kDoubt);
  CHECK(fixture.place(kShell, 2001, kLibrary) == "/lib/second.so+1000");
}

TEST_CASE("an exec among lost events does not end the doubt: a mapping is not taken for its successor") {
  Fixture fixture;
  fixture.table.on_events_lost(fixture.at(0), fixture.at(2000));
  fixture.start(100, 100, "sh", 7);
  fixture.map(150, 100, kLibrary, 8, "/lib/first.so");
  FakeProcess now = shell();
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh") +
             code_line(kLibrary, kLibrary + 0x10000, 0x1000, 9, "/lib/second.so");
  fixture.proc.put(now);
  fixture.set_clock(2000);
  CHECK(fixture.locate(kShell, 1500, {kLibrary}).trust == StackTrust::kDoubt);
  CHECK(fixture.locate(kShell, 1500, {kProgram}).trust == StackTrust::kAll);
  CHECK(fixture.place(kShell, 2001, kLibrary) == "/lib/second.so+1000");
  SECTION("one after them does") {
    fixture.table.on_exec(fixture.at(2100), 100, "cat");
    fixture.map(2101, 100, kProgram, 10, "/bin/cat");
    CHECK(fixture.place(kShell, 2200, kProgram) == "/bin/cat+1000");
  }
}

TEST_CASE("a mapping that no event reported is not trusted for samples from before /proc was read") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  FakeProcess now = shell();
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh") +
             code_line(kLibrary, kLibrary + 0x10000, 0x1000, 9, "/lib/second.so");
  fixture.proc.put(now);
  fixture.set_clock(2000);
  CHECK(fixture.locate(kShell, 1500, {kLibrary}).trust == StackTrust::kDoubt);
  CHECK(fixture.locate(kShell, 1500, {kProgram}).trust == StackTrust::kAll);
  CHECK(fixture.place(kShell, 2001, kLibrary) == "/lib/second.so+1000");
}

TEST_CASE("after events were lost, places whose file changed in an ended process are not trusted") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(3, 100, kLibrary, 8, "/lib/first.so");
  fixture.map(4, 100, kLibrary, 9, "/lib/second.so");
  static_cast<void>(fixture.place(kShell, 5, kProgram));
  fixture.table.on_events_lost(fixture.at(10), fixture.at(10));
  CHECK(fixture.locate(kShell, 20, {kLibrary}).trust == StackTrust::kDoubt);
  CHECK(fixture.locate(kShell, 20, {kProgram}).trust == StackTrust::kAll);
}

TEST_CASE("modules that only samples before a read of /proc need are listed as mapped") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  const ModuleId shell_file = fixture.locate(kShell, 5, {kProgram}).frames.at(0).module;
  FakeProcess now = shell();
  now.maps = code_line(kProgram, kProgram + 0x10000, 0x3000, 50, "/bin/ls");
  fixture.proc.put(now);
  fixture.set_clock(50);
  fixture.table.on_events_lost(fixture.at(30), fixture.at(30));
  static_cast<void>(fixture.table.resolve(kShell, fixture.at(40)));
  REQUIRE(fixture.table.resolve(kShell, fixture.at(20)).earlier_maps != nullptr);
  std::vector<ModuleId> modules;
  fixture.table.known().append_mapped_modules(modules);
  CHECK(std::count(modules.begin(), modules.end(), shell_file) == 1);
}

TEST_CASE("a process that events should have announced is trusted from the read of /proc on") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.set_clock(2000);
  CHECK(fixture.locate(kShell, 1500, {kProgram}).trust == StackTrust::kDoubt);
  CHECK(fixture.locate(kShell, 2000, {kProgram}).trust == StackTrust::kAll);
}

TEST_CASE("without a source of events, mappings from /proc are used for earlier samples too") {
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

TEST_CASE("editions of tables are found by their number, until others replaced them long ago") {
  TableEditions editions;
  std::vector<std::shared_ptr<const MappingSet>> maps;
  std::vector<std::uint16_t> numbers;
  for (int i = 0; i < 20; ++i) {
    maps.push_back(std::make_shared<const MappingSet>());
    editions.add(maps.back(), {i * kNsPerMs});
    numbers.push_back(editions.newest());
  }
  CHECK(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
  CHECK(editions.find(numbers[3]) == nullptr);
  for (std::size_t i = 4; i < 20; ++i) CHECK(editions.find(numbers[i]) == maps[i].get());
  editions.forget_replaced({18 * kNsPerMs});
  CHECK(editions.find(numbers[17]) == nullptr);
  CHECK(editions.find(numbers[18]) == maps[18].get());
  editions.forget_replaced({1000 * kNsPerMs});
  CHECK(editions.find(numbers[18]) == nullptr);
  CHECK(editions.find(numbers[19]) == maps[19].get());
}

TEST_CASE("after events were lost, processes that no longer exist are ended") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.proc.put({200, 6000});
  fixture.table.scan();
  fixture.table.resolve(kShell, fixture.at(1)).sampled = true;
  fixture.proc.remove(100);
  fixture.table.purge(fixture.at(2));
  CHECK(fixture.table.known().running() == 2);

  fixture.table.on_events_lost(fixture.at(0), fixture.at(0));
  fixture.table.purge(fixture.at(3));
  CHECK(fixture.table.known().running() == 1);
  CHECK(fixture.table.known().ended() == 1);
  CHECK(fixture.changed() == std::vector<ProcessId>{kShell});
  CHECK(fixture.place(kShell, 4, kProgram) == "/bin/sh+1000");
}

}  // namespace
}  // namespace flamed::symbolizer
