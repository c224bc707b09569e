// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/proc_folder.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::symbolizer {
namespace {

TEST_CASE("only numeric entries of procfs are processes") {
  const test::FakeProc proc;
  for (const char* other : {"self", "17a", "99999999999", "sys"})
    proc.directory().write(std::string(other) + "/stat", "");
  for (const std::int32_t pid : {1, 17, 4'194'304}) proc.put({.pid = pid});
  std::vector<std::int32_t> pids = running_pids(proc.path());
  std::sort(pids.begin(), pids.end());
  CHECK(pids == std::vector<std::int32_t>{1, 17, 4'194'304});
  CHECK(running_pids(proc.path() + "/not mounted").empty());
}

TEST_CASE("a thread other than the first is found, if there is one") {
  const test::FakeProc proc;
  proc.put({.pid = 17});
  CHECK_FALSE(other_thread(proc.path(), 17));
  proc.directory().write("17/task/17/stat", "");
  CHECK_FALSE(other_thread(proc.path(), 17));
  proc.directory().write("17/task/23/stat", "");
  CHECK(other_thread(proc.path(), 17) == 23);
  CHECK_FALSE(other_thread(proc.path(), 18));
}

TEST_CASE("a process is alive while it has its pid and is not a zombie") {
  const test::FakeProc proc;
  test::FakeProcess process{.pid = 17, .start_ticks = 5};
  proc.put(process);
  CHECK(is_alive(proc.path(), {17, 5}));
  CHECK_FALSE(is_alive(proc.path(), {17, 4}));
  CHECK_FALSE(is_alive(proc.path(), {18, 5}));
  process.state = 'Z';
  proc.put(process);
  CHECK_FALSE(is_alive(proc.path(), {17, 5}));
}

TEST_CASE("a process's files lie below its pid") {
  CHECK(proc_path("/proc", 17, "task/23/maps") == "/proc/17/task/23/maps");
}

}  // namespace
}  // namespace flamed::symbolizer
