// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/process_status.h"

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

constexpr const char* kStatus =
    "Name:\tUid:\nUmask:\t0022\nState:\tS (sleeping)\nPid:\t4242\nUid:\t1000\t1001\t1002\t1003\nGid:\t50\t51\t52\t53\n"
    "NSpid:\t4242\t17\t1\nSigBlk:\t0000000000000000\nSigCgt:\t0000000000000004\nCapInh:\t0\n";

TEST_CASE("a status file has users, groups, the innermost pid and the signals with handlers") {
  const auto status = parse_process_status(kStatus);
  REQUIRE(status.has_value());
  CHECK(status->uid.real == 1000);
  CHECK(status->uid.effective == 1001);
  CHECK(status->uid.saved == 1002);
  CHECK(status->gid.effective == 51);
  CHECK(status->innermost_pid == 1);
  CHECK(status->catches(SIGQUIT));
  CHECK_FALSE(status->catches(SIGINT));
  CHECK(status->acts_for(1001));
  CHECK(status->acts_for(1003));
  CHECK_FALSE(status->acts_for(1000));
  CHECK_FALSE(status->acts_for(1002));
  CHECK_FALSE(status->acts_for(0));
}

TEST_CASE("supplementary groups and permitted capabilities are read; without their line there are all capabilities") {
  const auto status = parse_process_status(std::string(kStatus) + "Groups:\t4 27 1000 \nCapPrm:\t00000000a80425fb\n");
  REQUIRE(status.has_value());
  CHECK(status->groups == std::vector<std::uint32_t>{4, 27, 1000});
  CHECK(status->capabilities == 0xa80425fb);
  const auto without = parse_process_status(kStatus);
  REQUIRE(without.has_value());
  CHECK(without->groups.empty());
  CHECK(without->capabilities == ~std::uint64_t{0});
}

TEST_CASE("a status file with a missing or damaged line is refused") {
  const std::string whole = kStatus;
  for (const char* line : {"Uid:\t", "Gid:\t", "NSpid:\t", "SigCgt:\t"}) {
    CAPTURE(line);
    std::string text = whole;
    text[text.rfind(std::string("\n") + line) + 1] = 'x';
    CHECK_FALSE(parse_process_status(text).has_value());
  }
  CHECK_FALSE(parse_process_status("Uid:\t1\t2\t3\nGid:\t1\t2\t3\t4\nNSpid:\t1\nSigCgt:\t0\n").has_value());
  CHECK_FALSE(parse_process_status("Uid:\t1\t2\t3\tx\nGid:\t1\t2\t3\t4\nNSpid:\t1\nSigCgt:\t0\n").has_value());
  CHECK_FALSE(parse_process_status("").has_value());
}

TEST_CASE("the kernel's status file of this process is read") {
  const auto status = parse_process_status(read_file("/proc/self/status", 1 << 16).value());
  REQUIRE(status.has_value());
  CHECK(status->uid.effective == ::geteuid());
  CHECK(status->gid.effective == ::getegid());
  CHECK(status->innermost_pid == ::getpid());
}

}  // namespace
}  // namespace flamed::symbolizer
