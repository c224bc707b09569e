// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/process_tracker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/support/manual_clock.h"
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

// -- Looking at /proc ------------------------------------------------------------------------------------------------

TEST_CASE("a scan adds running processes, and nothing else in /proc") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.proc.put({200, 6000});
  fixture.proc.directory().write("self/stat", "nonsense");
  fixture.proc.directory().write("300/stat", "nonsense");
  fixture.proc.directory().write("12x/stat", test::stat_line({12, 1}));
  fixture.proc.directory().write("uptime", "1 2");
  fixture.table.scan();
  CHECK(fixture.table.known().running() == 2);
  Process& process = fixture.table.resolve(kShell, fixture.at(1));
  CHECK(process.comm == "sh");
  CHECK(process.executable == "/bin/sh");
  CHECK(process.parent_pid == 1);
  CHECK_FALSE(process.ended);
  CHECK(fixture.place(kShell, 1, kLibrary + 0x123) == "/lib/libc.so.6+28123");
}

TEST_CASE("a scan of a missing /proc adds no process") {
  ManualClock clock{MonotonicTime{0}, WallTime{0}};
  ModuleTable modules(10, clock);
  ProcessTracker table(modules, clock, "/nonexistent/proc");
  table.scan();
  CHECK(table.known().running() == 0);
}

TEST_CASE("a scan leaves zombies out, since no event will report their end") {
  Fixture fixture;
  FakeProcess zombie{100, 5000};
  zombie.state = 'Z';
  fixture.proc.put(zombie);
  fixture.table.scan();
  CHECK(fixture.table.known().running() == 0);
}

TEST_CASE("an unknown process is read from /proc when its first sample comes") {
  Fixture fixture;
  fixture.proc.put(shell());
  CHECK(fixture.place(kShell, 1, kProgram + 0x10) == "/bin/sh+1010");
  CHECK(fixture.table.known().running() == 1);
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

TEST_CASE("a process that ended before anything could be read keeps its plain addresses") {
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

TEST_CASE("the last addresses of user space are kept if no mappings are known") {
  Fixture fixture;
#if defined(__aarch64__)
  constexpr std::uint64_t kHigh = 0xffff'f7f0'0000;
#else
  constexpr std::uint64_t kHigh = 0x7fff'f7f0'0000;
#endif
  const auto located = fixture.locate({999, 1}, 0, {0x401000, kHigh});
  CHECK(located.trust == StackTrust::kNoMaps);
  CHECK(located.frames.size() == 2);
}

TEST_CASE("an address outside of user space cuts the stack also if no mappings are known") {
  Fixture fixture;
  const auto located = fixture.locate({999, 1}, 0, {0x401000, 0xffff800000000000, 0x402000});
  CHECK(located.trust == StackTrust::kCut);
  CHECK(located.frames.size() == 1);
}

// -- Following events ------------------------------------------------------------------------------------------------

TEST_CASE("a process that forks, execs and maps is known without a read of /proc") {
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
  CHECK(fixture.table.known().running() == 1);
  CHECK(fixture.place(kShell, 11, kProgram) == "/bin/sh+1000");
}

TEST_CASE("exec discards the mappings, and the first program mapped after it is the new executable") {
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

TEST_CASE("events from before the read of /proc change nothing") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.table.on_fork(fixture.at(-30), 100, 1);
  fixture.table.on_exec(fixture.at(-20), 100, "old");
  fixture.map(-10, 100, kProgram, 99, "/bin/old");
  CHECK(fixture.place(kShell, 1, kProgram) == "/bin/sh+1000");
  CHECK(fixture.table.resolve(kShell, fixture.at(1)).comm == "sh");
  CHECK(fixture.table.known().ended() == 0);
}

TEST_CASE("the end of a pid's earlier process does not end the one that was seen alive since") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.table.on_exit(fixture.at(-1), 100, 100);
  CHECK(fixture.table.known().running() == 1);
  fixture.table.on_exit(fixture.at(1), 100, 100);
  CHECK(fixture.table.known().running() == 0);
}

TEST_CASE("events from after the read of /proc count") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.map(10, 100, kProgram, 99, "/bin/new");
  CHECK(fixture.place(kShell, 11, kProgram) == "/bin/new+1000");
}

TEST_CASE("a mapping of an unknown process triggers a read of /proc") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.map(-1, 100, 0x900000, 30, "/lib/seen.so");
  CHECK(fixture.table.known().running() == 1);
  CHECK(fixture.place(kShell, 1, kProgram) == "/bin/sh+1000");
}

TEST_CASE("a single mapping of a process whose others are unknown is not taken for all of them") {
  Fixture fixture;
  fixture.table.on_fork(fixture.at(1), 100, 99);
  fixture.map(2, 100, 0x900000, 30, "/lib/plugin.so");
  FakeProcess process = shell();
  process.maps += code_line(0x900000, 0x910000, 0x1000, 30, "/lib/plugin.so");
  fixture.proc.put(process);
  fixture.set_clock(3);
  // The program counter is in known code, so it does not trigger a read.
  CHECK(fixture.locate(kShell, 4, {0x900000, kProgram + 0x10}).trust == StackTrust::kAll);
}

TEST_CASE("a mapping whose end would lie beyond the address space is ignored") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(5, 100, ~0ULL - 0xfff, 30, "/lib/odd.so", 0, 0x2000);
  CHECK(fixture.table.resolve(kShell, fixture.at(6)).maps->mappings().size() == 1);
}

TEST_CASE("a process that keeps mapping at new addresses is read again before its mappings fill the memory") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  static_cast<void>(fixture.table.resolve(kShell, fixture.at(1)));
  for (std::uint64_t i = 0; i < 65'600; ++i) {
    // Mapping downwards would move all of the set's memory each time. The kernel mostly maps downwards, but slower than
    // this.
    fixture.map(2000, 100, 0x7f1000000000 + i * 0x10000, 0, "//anon");
  }
  CHECK(fixture.table.resolve(kShell, fixture.at(2001)).maps->mappings().size() < 1000);
  CHECK(fixture.place(kShell, 2002, kProgram) == "/bin/sh+1000");
}

TEST_CASE("the known mappings of a process that maps ever more and can't be read are dropped") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  static_cast<void>(fixture.table.resolve(kShell, fixture.at(1)));
  std::filesystem::remove(fixture.proc.directory().path("100/maps"));
  for (std::uint64_t i = 0; i < 131'072; ++i) fixture.map(2000, 100, 0x7f1000000000 + i * 0x10000, 0, "//anon");
  const Process& process = fixture.table.resolve(kShell, fixture.at(2000));
  CHECK(process.maps->mappings().size() < 100);
  CHECK(process.stale);
  // Later mappings are known again.
  fixture.map(2001, 100, 0x900000, 30, "/lib/plugin.so");
  CHECK(fixture.place(kShell, 2002, 0x900000) == "/lib/plugin.so+1000");
}

TEST_CASE("mappings that can't be read are retried after ever longer pauses") {
  Fixture fixture;
  fixture.proc.directory().write("100/stat", test::stat_line(shell()));
  static_cast<void>(fixture.table.resolve(kShell, fixture.at(0)));
  const auto looks_at = [&](std::int64_t ms) {
    return fixture.table.resolve(kShell, fixture.at(ms)).looked_at == fixture.at(ms);
  };
  CHECK_FALSE(looks_at(999));
  CHECK(looks_at(1000));
  CHECK_FALSE(looks_at(2999));
  CHECK(looks_at(3000));
  CHECK_FALSE(looks_at(6999));
  CHECK(looks_at(7000));
  fixture.proc.put(shell());
  CHECK_FALSE(looks_at(14'999));
  CHECK(looks_at(15'000));
  CHECK(fixture.place(kShell, 15'001, kProgram) == "/bin/sh+1000");
}

// -- Changes to tell -------------------------------------------------------------------------------------------------

TEST_CASE("changes of sampled processes are reported once") {
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

TEST_CASE("a pending change is reported although the process's start moved to another tick") {
  Fixture fixture;
  // In the middle of a tick, so its start is not read from /proc.
  fixture.start(5, 100, "make", 7);
  fixture.table.on_fork(fixture.at(6), 101, 100);
  Process& child = fixture.table.resolve({101, 100'000}, fixture.at(7));
  Process* const parent = fixture.table.parent_of(child);
  REQUIRE(parent != nullptr);
  REQUIRE(parent->start_is_estimate);
  parent->published = true;
  fixture.table.watch_mappings(*parent);
  fixture.table.on_comm(100, "renamed");
  const ProcessId estimate = parent->id;
  const ProcessId real{100, estimate.start_ticks - 1};
  CHECK(fixture.table.resolve(real, fixture.at(8)).id == real);
  std::vector<ProcessId> told;
  fixture.table.changed().take([&](const Process& process) { told.push_back(process.id); });
  fixture.table.remapped().take([&](const Process& process) { told.push_back(process.id); });
  CHECK(told == std::vector<ProcessId>{real, real});
}

TEST_CASE("a comm of an unknown process is ignored") {
  Fixture fixture;
  fixture.table.on_comm(100, "x");
  CHECK(fixture.table.known().running() == 0);
}

// -- Ends and reused pids --------------------------------------------------------------------------------------------

TEST_CASE("a late sample of an ended process finds its mappings, for a limited time") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  static_cast<void>(fixture.table.resolve(kShell, fixture.at(5)));
  fixture.table.on_exit(fixture.at(10), 100, 100);
  CHECK(fixture.table.known().running() == 0);
  CHECK(fixture.place(kShell, 9, kProgram) == "/bin/sh+1000");
  CHECK(fixture.table.resolve(kShell, fixture.at(9)).ended);
  fixture.table.purge(fixture.at(3009));
  CHECK(fixture.table.known().ended() == 1);
  fixture.table.purge(fixture.at(3010));
  CHECK(fixture.table.known().ended() == 0);
}

TEST_CASE("a sample after a process's end extends how long the process is kept") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.table.on_exit(fixture.at(10), 100, 100);
  CHECK(fixture.table.resolve(kShell, fixture.at(500)).ended);
  fixture.table.purge(fixture.at(3499));
  CHECK(fixture.table.known().ended() == 1);
  fixture.table.purge(fixture.at(3500));
  CHECK(fixture.table.known().ended() == 0);
}

TEST_CASE("a command line that was read after the process's end is withdrawn") {
  Fixture fixture;
  for (const std::int64_t asked_ms : {9, 11}) {
    fixture.start(0, 100, "sh", 7);
    Process& process = fixture.table.resolve(kShell, fixture.at(5));
    process.sampled = true;
    process.detail = {8, "sh -c x"};
    process.asked_pid_at = fixture.at(asked_ms);
    fixture.table.on_exit(fixture.at(10), 100, 100);
    int told = 0;
    fixture.table.changed().take([&](const Process& ended) {
      ++told;
      const bool is_own = asked_ms == 9;
      CHECK(ended.detail.command_line == (is_own ? "sh -c x" : ""));
      CHECK(ended.detail.uid == 8U);
      CHECK(ended.only_ended == is_own);
    });
    CHECK(told == 1);
    fixture.table.purge(fixture.at(4000));
  }
}

TEST_CASE("if events were lost or have no source, no end is certain") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  Process& process = fixture.table.resolve(kShell, fixture.at(5));
  CHECK(fixture.table.will_report_end(process));
  SECTION("lost") { fixture.table.on_events_lost(fixture.at(6), fixture.at(6)); }
  SECTION("nobody") { fixture.table.on_no_events(); }
  CHECK_FALSE(fixture.table.will_report_end(process));
}

TEST_CASE("a process that ended before its first sample arrived is found by its pid") {
  Fixture fixture;
  fixture.start(0, 100, "true", 7);
  fixture.table.on_exit(fixture.at(10), 100, 100);
  CHECK(fixture.place(kShell, 9, kProgram) == "/bin/true+1000");
  CHECK(fixture.table.resolve(kShell, fixture.at(9)).id == kShell);
  CHECK(fixture.table.known().ended() == 1);
}

TEST_CASE("a process goes on without its first thread, until the last thread ends") {
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
  CHECK(fixture.table.known().running() == 1);
  CHECK_FALSE(fixture.table.resolve(kShell, fixture.at(20)).ended);
  CHECK(fixture.place(kShell, 20, kProgram) == "/bin/sh+1000");
  // Also if the mappings have to be read again.
  fixture.table.on_events_lost(fixture.at(30), fixture.at(30));
  fixture.set_clock(40);
  CHECK(fixture.place(kShell, 50, kProgram) == "/bin/sh+1000");
  CHECK_FALSE(fixture.table.resolve(kShell, fixture.at(50)).stale);

  std::filesystem::remove_all(std::filesystem::path(thread).parent_path());
  fixture.table.on_exit(fixture.at(60), 100, 101);
  CHECK(fixture.table.known().running() == 0);
  CHECK(fixture.table.resolve(kShell, fixture.at(55)).last_seen == fixture.at(60));
}

TEST_CASE("the end of any other thread ends no process") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.table.on_fork(fixture.at(6), 100, 100);
  fixture.table.on_exit(fixture.at(10), 100, 101);
  CHECK(fixture.table.known().running() == 1);
}

TEST_CASE("a scan adds a process whose first thread has ended while others go on") {
  Fixture fixture;
  FakeProcess zombie = shell();
  zombie.state = 'Z';
  zombie.maps.clear();
  fixture.proc.put(zombie);
  fixture.proc.directory().write("100/task/101/maps", code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh"));
  fixture.table.scan();
  CHECK(fixture.place(kShell, 1, kProgram) == "/bin/sh+1000");
}

TEST_CASE("the end of an unknown process is ignored") {
  Fixture fixture;
  fixture.table.on_exit(fixture.at(10), 100, 100);
  CHECK(fixture.table.known().ended() == 0);
}

TEST_CASE("a reused pid is another process, with another start") {
  Fixture fixture;
  fixture.start(0, 100, "first", 7);
  static_cast<void>(fixture.table.resolve({100, 5000}, fixture.at(5)));
  fixture.table.on_exit(fixture.at(10), 100, 100);
  fixture.start(20, 100, "second", 8);
  CHECK(fixture.place({100, 5002}, 30, kProgram) == "/bin/second+1000");
  CHECK(fixture.place({100, 5000}, 9, kProgram) == "/bin/first+1000");
}

TEST_CASE("a fork to a pid whose end was missed ends the old process") {
  Fixture fixture;
  fixture.start(0, 100, "first", 7);
  static_cast<void>(fixture.table.resolve({100, 5000}, fixture.at(5)));
  fixture.start(20, 100, "second", 8);
  CHECK(fixture.table.known().running() == 1);
  CHECK(fixture.table.known().ended() == 1);
  CHECK(fixture.place({100, 5002}, 30, kProgram) == "/bin/second+1000");
}

TEST_CASE("a sample with a later start shows that the pid was reused") {
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

TEST_CASE("a sample with an earlier start does not change the pid's present process") {
  Fixture fixture;
  fixture.proc.put(shell());
  fixture.table.scan();
  fixture.table.resolve(kShell, fixture.at(4)).sampled = true;
  Process& late = fixture.table.resolve({100, 4000}, fixture.at(5));
  CHECK(late.ended);
  CHECK(late.maps == nullptr);
  CHECK(fixture.table.known().running() == 1);
  CHECK_FALSE(fixture.table.resolve(kShell, fixture.at(6)).ended);
  CHECK(fixture.table.resolve(kShell, fixture.at(6)).sampled);
  CHECK(fixture.changed().empty());
}

TEST_CASE("details in /proc of a pid's next process are not taken for the sampled one's") {
  Fixture fixture;
  fixture.proc.put(shell(100, 7000));
  Process& gone = fixture.table.resolve({100, 5000}, fixture.at(5));
  CHECK(gone.ended);
  CHECK(gone.maps == nullptr);

  // Likewise when a known process is read again.
  fixture.start(10, 200, "first", 70);
  static_cast<void>(fixture.place({200, 8000}, 20, kProgram));
  FakeProcess next = shell(200, 9000);
  fixture.proc.put(next);
  CHECK(fixture.locate({200, 8000}, 2000, {kLibrary}).trust == StackTrust::kAll);
  CHECK(fixture.place({200, 8000}, 2000, kLibrary) == "[unmapped]+7f0000000000");
  CHECK(fixture.place({200, 8000}, 2000, kProgram) == "/bin/first+1000");
}

TEST_CASE("a closed file is opened again when it is mapped again, and processes use its new module") {
  Fixture fixture;
  const Fd file(::memfd_create("tool", MFD_CLOEXEC));
  const auto again = [&] { return Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)); };
  fixture.start(0, 100, "tool", 7);
  const ModuleId before = fixture.locate({100, 5000}, 5, {kProgram}).frames.at(0).module;
  auto request = fixture.next_request();
  REQUIRE(request);
  fixture.modules.finish(*request, again());
  CHECK(fixture.table.known().releases() == 1);  // by its exec
  fixture.table.on_exit(fixture.at(10), 100, 100);
  fixture.set_clock(5000);
  fixture.table.purge(fixture.at(5000));
  CHECK(fixture.table.known().releases() == 2);
  std::vector<ModuleId> mapped;
  fixture.table.known().append_mapped_modules(mapped);
  CHECK(mapped.empty());
  fixture.modules.note_mapped(mapped);
  for (const auto& abandoned : fixture.modules.abandoned(fixture.clock.monotonic())) {
    fixture.modules.close(abandoned.module, std::make_shared<const KeptNames>(), "closed");
  }
  REQUIRE(fixture.modules.find(before)->is_closed());

  REQUIRE(::write(file.get(), "other", 5) == 5);
  fixture.start(6000, 200, "tool", 7);
  request = fixture.next_request();
  REQUIRE(request);
  CHECK(request->module == before);
  CHECK(request->pid == 200);
  const ProcessId second{200, 5600};
  CHECK(fixture.locate(second, 6010, {kProgram}).frames.at(0).module == before);
  const ModuleId after = fixture.modules.finish(*request, again());
  CHECK(after != before);
  CHECK(fixture.locate(second, 6100, {kProgram, kProgram + 2}).frames ==
        std::vector<Frame>{{after, 0x1000}, {after, 0x1001}});
  CHECK_FALSE(fixture.next_request());
  // Later mappings get it at once.
  fixture.start(6200, 300, "tool", 7);
  CHECK(fixture.locate({300, 5620}, 6210, {kProgram}).frames.at(0).module == after);
}

}  // namespace
}  // namespace flamed::symbolizer
