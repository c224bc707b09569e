// SPDX-License-Identifier: Apache-2.0
//
// How the table of processes resolves addresses to frames, and what it requests about their modules.
#include "symbolizer/process/process_tracker.h"

#include <algorithm>
#include <optional>
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

// -- Addresses to frames ---------------------------------------------------------------------------------------------

TEST_CASE("callers are one byte before their return address, the innermost frame is exactly at its address") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.map(3, 100, kLibrary, 8, "/lib/libc.so.6", 0);
  // The second caller's call is the program's last instruction, so its return address is outside of the program.
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

TEST_CASE("a program counter outside of known code triggers a read of /proc, at most once a second") {
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

TEST_CASE("the vdso is one module for all processes, with offsets from its start") {
  Fixture fixture;
  fixture.start(0, 100, "a", 7);
  fixture.map(5, 100, 0x7ffe00000000, 0, "[vdso]", 0x1234000, 0x2000);
  const auto located = fixture.locate(kShell, 10, {0x7ffe00000a10});
  REQUIRE(located.frames.size() == 1);
  CHECK(located.frames[0] == Frame{kVdsoModule, 0xa10});
}

TEST_CASE("a stack without addresses is whole, and needs no read of /proc") {
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

TEST_CASE("a module's file is requested when a sample is in it, with the place where it is mapped") {
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

TEST_CASE("a file that could not be opened is requested again with further samples") {
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

TEST_CASE("JIT files are requested when a sample was in memory without a file, at most once a second") {
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

TEST_CASE("memory that .NET maps twice to write code counts as memory without a file") {
  Fixture fixture;
  fixture.start(0, 200, "dotnet", 8);
  fixture.map(5, 200, 0x900000, 77, "/memfd:doublemapper (deleted)");
  CHECK(fixture.place({200, 6000}, 6, 0x900123) == "[anon]+900123");
  fixture.map(7, 200, 0xa00000, 78, "/memfd:program (deleted)");
  CHECK(fixture.place({200, 6000}, 8, 0xa00123) == "/memfd:program+1123");
}

TEST_CASE("the modules of all processes are listed, also of those that ended a moment ago") {
  Fixture fixture;
  fixture.start(0, 100, "sh", 7);
  fixture.start(0, 200, "ls", 8);
  fixture.map(5, 200, 0x900000, 0, "//anon");
  const Frame anonymous = fixture.locate({200, 6000}, 6, {0x900000}).frames.at(0);
  const Frame program = fixture.locate(kShell, 6, {kProgram}).frames.at(0);
  const Frame unmapped = fixture.locate(kShell, 6, {0x10}).frames.at(0);
  fixture.table.on_exit(fixture.at(10), 200, 200);
  std::vector<ModuleId> modules;
  fixture.table.known().append_mapped_modules(modules);
  for (const ModuleId module : {anonymous.module, program.module, unmapped.module}) {
    CHECK(std::count(modules.begin(), modules.end(), module) == 1);
  }
}

}  // namespace
}  // namespace flamed::symbolizer
