// SPDX-License-Identifier: Apache-2.0
//
// ProcessTableFixture: a table of processes over a fake /proc.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "symbolizer/process/process_tracker.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::test {

inline constexpr std::uint64_t kProgram = 0x400000;  ///< where programs are mapped
inline constexpr std::uint64_t kLibrary = 0x7f0000000000;

/// The clock is at 1000 s. Times of events are in milliseconds relative to it.
struct ProcessTableFixture {
  static constexpr std::int64_t kStartNs = 1000 * kNsPerSecond;

  [[nodiscard]] static MonotonicTime at(std::int64_t ms) { return {kStartNs + ms * kNsPerMs}; }
  void set_clock(std::int64_t ms) { clock.advance_ns(at(ms).ns - clock.monotonic().ns); }

  void map(std::int64_t ms, std::int32_t pid, std::uint64_t start, std::uint64_t inode, const std::string& path,
           std::uint64_t file_offset = 0x1000, std::uint64_t length = 0x10000) {
    table.on_mapping(at(ms), {pid, start, length, file_offset,
                              inode == 0 ? symbolizer::FileKey{} : symbolizer::FileKey{8, 1, inode}, path});
  }
  /// fork and exec as the kernel reports them.
  void start(std::int64_t ms, std::int32_t pid, const std::string& comm, std::uint64_t inode) {
    table.on_fork(at(ms), pid, 1);
    table.on_exec(at(ms + 1), pid, comm);
    map(ms + 2, pid, kProgram, inode, "/bin/" + comm);
  }
  struct Located {
    symbolizer::StackTrust trust;
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
    const symbolizer::ModulePtr module = modules.find(located.frames[0].module);
    REQUIRE(module != nullptr);
    char offset[32];
    std::snprintf(offset, sizeof offset, "+%llx", static_cast<unsigned long long>(located.frames[0].offset));
    return module->path + offset;
  }
  std::vector<ProcessId> changed() {
    std::vector<ProcessId> ids;
    table.changed().take([&](const symbolizer::Process& process) { ids.push_back(process.id); });
    return ids;
  }
  std::optional<symbolizer::OpenRequest> next_request() {
    std::stop_source stopped;
    stopped.request_stop();
    return modules.next_request(stopped.get_token());
  }

  FakeProc proc;
  ManualClock clock{MonotonicTime{kStartNs}, WallTime{0}};
  symbolizer::ModuleTable modules{100, clock};
  symbolizer::ProcessTracker table{modules, clock, proc.path()};
};

inline FakeProcess shell(std::int32_t pid = 100, std::uint64_t start_ticks = 5000) {
  FakeProcess process{pid, start_ticks};
  process.comm = "sh";
  process.executable = "/bin/sh";
  process.maps = code_line(kProgram, kProgram + 0x10000, 0x1000, 7, "/bin/sh") +
                 code_line(kLibrary, kLibrary + 0x10000, 0x28000, 8, "/lib/libc.so.6") +
                 code_line(0x7ffe00000000, 0x7ffe00002000, 0, 0, "[vdso]");
  return process;
}
inline constexpr ProcessId kShell{100, 5000};

}  // namespace flamed::test
