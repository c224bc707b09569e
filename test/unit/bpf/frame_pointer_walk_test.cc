// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <random>

#include "test/catch.h"
#include "test/unit/bpf/user_memory.h"

// Replaces bpf/kernel/user_registers.h, which needs the kernel's helpers, with the part that the walk uses.
#define FLAMED_BPF_USER_REGISTERS_H
#define bpf_probe_read_user(to, size, from) \
  flamed::test::read_current_memory(to, size, reinterpret_cast<std::uint64_t>(from))
struct user_registers {
  unsigned long long pc, sp, fp, lr;
  unsigned is_32bit;
};
#include "bpf/walk/frame_pointer_walk.h"

namespace flamed {
namespace {

using test::UserMemory;

constexpr std::uint64_t kStack = 0x7ffc00001000;
constexpr std::size_t kStackWords = 8192;

struct Walked {
  flamed_sample sample{};
  std::array<__u64, FLAMED_MAX_USER_FRAMES + 1> addresses{};
};

Walked walk(const UserMemory& memory, const user_registers& regs) {
  const UserMemory::Scope scope(memory);
  Walked walked;
  walked.addresses.fill(0xabcd);
  pointer_walk state{};
  begin_pointer_walk(&state, &walked.sample, walked.addresses.data(), &regs);
  while (next_by_pointer(&state, &walked.sample, walked.addresses.data()) != 0) {
  }
  return walked;
}

/// Frames 4 words apart, the last one's saved frame pointer 0.
UserMemory chain_of(std::uint32_t callers) {
  UserMemory memory(kStack, kStackWords);
  for (std::uint32_t i = 0; i < callers; ++i) {
    const std::uint64_t fp = kStack + 64 + i * 32ULL;
    memory.put(fp, i + 1 == callers ? 0 : fp + 32);
    memory.put(fp + 8, 0x402000 + i);
  }
  return memory;
}

constexpr user_registers kAtChain{0x401000, kStack, kStack + 64, 0, 0};

TEST_CASE("a chain of frame pointers is walked to its end") {
  for (const std::uint32_t callers : {1U, 2U, 30U, 1022U, 1023U}) {
    CAPTURE(callers);
    const Walked walked = walk(chain_of(callers), kAtChain);
    CHECK(walked.sample.user_end == FLAMED_END_OUTERMOST);
    REQUIRE(walked.sample.user_count == callers + 1);
    CHECK(walked.addresses[0] == 0x401000);
    CHECK(walked.addresses[1] == 0x402000);
    CHECK(walked.addresses[callers] == 0x402000 + callers - 1);
  }
}

TEST_CASE("a chain longer than a record is cut and marked as cut") {
  for (const std::uint32_t callers : {1024U, 1200U}) {
    CAPTURE(callers);
    const Walked walked = walk(chain_of(callers), kAtChain);
    CHECK(walked.sample.user_end == FLAMED_END_DEPTH_LIMIT);
    CHECK(walked.sample.user_count == FLAMED_MAX_USER_FRAMES);
    CHECK(walked.addresses[FLAMED_MAX_USER_FRAMES - 1] == 0x402000 + FLAMED_MAX_USER_FRAMES - 2);
    CHECK(walked.addresses[FLAMED_MAX_USER_FRAMES] == 0xabcd);
  }
}

TEST_CASE("each way in which a chain of frame pointers breaks has its reason") {
  struct Case {
    const char* what;
    std::uint64_t fp, saved_fp, return_address;
    unsigned end, count;
  };
  constexpr std::uint64_t kFp = kStack + 64;
  for (const Case& c : {
           Case{"none", 0, 0, 0, FLAMED_END_OUTERMOST, 1},
           Case{"below sp", kStack - 8, 0, 0, FLAMED_END_BROKEN_POINTER, 1},
           Case{"odd", kFp + 2, 0, 0, FLAMED_END_BROKEN_POINTER, 1},
           Case{"outside", 0x7fff00000000, 0, 0, FLAMED_END_UNREADABLE, 1},
           Case{"ends", kFp, 0, 0, FLAMED_END_OUTERMOST, 1},
           Case{"no return address", kFp, kFp + 64, 0, FLAMED_END_BROKEN_POINTER, 1},
           Case{"to itself", kFp, kFp, 0x402000, FLAMED_END_BROKEN_POINTER, 2},
           Case{"back down", kFp, kStack, 0x402000, FLAMED_END_BROKEN_POINTER, 2},
       }) {
    CAPTURE(c.what);
    UserMemory memory(kStack, kStackWords);
    if (c.fp == kFp) {
      memory.put(kFp, c.saved_fp);
      memory.put(kFp + 8, c.return_address);
    }
    const Walked walked = walk(memory, {0x401000, kStack, c.fp, 0, 0});
    CHECK(unsigned{walked.sample.user_end} == c.end);
    CHECK(unsigned{walked.sample.user_count} == c.count);
  }
}

#if defined(__TARGET_ARCH_arm64)
TEST_CASE("return addresses in a chain of frame pointers lose their signatures") {
  UserMemory memory(kStack, kStackWords);
  memory.put(kStack + 64, kStack + 128);
  memory.put(kStack + 72, 0x0055'0000'0040'2000);
  memory.put(kStack + 128, 0);
  memory.put(kStack + 136, 0x007f'0000'0040'3000);
  const Walked walked = walk(memory, kAtChain);
  CHECK(walked.sample.user_end == FLAMED_END_OUTERMOST);
  REQUIRE(walked.sample.user_count == 3);
  CHECK(walked.addresses[1] == 0x40'2000);
  CHECK(walked.addresses[2] == 0x40'3000);
}
#endif

TEST_CASE("a 32-bit process has frames of two 32-bit words") {
  constexpr std::uint64_t kLow = 0xffff0000;
  UserMemory memory(kLow, 64);
  memory.put32(kLow + 4, kLow + 20);
  memory.put32(kLow + 8, 0x8048123);
  memory.put32(kLow + 20, 0);
  memory.put32(kLow + 24, 0x8048456);
  const Walked walked = walk(memory, {0x8048000, kLow, kLow + 4, 0, 1});
  CHECK(walked.sample.user_end == FLAMED_END_OUTERMOST);
  REQUIRE(walked.sample.user_count == 3);
  CHECK(walked.addresses[1] == 0x8048123);
  CHECK(walked.addresses[2] == 0x8048456);
}

TEST_CASE("a walk of random memory stays within the record") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 500; ++round) {
    UserMemory memory(kStack, kStackWords);
    for (std::size_t i = 0; i < kStackWords; ++i) memory.put(kStack + i * 8, kStack + random() % (kStackWords * 8));
    const Walked walked = walk(memory, {0x401000, kStack, kStack + random() % 64 * 8, 0, 0});
    CHECK(walked.sample.user_count >= 1);
    CHECK(walked.sample.user_count <= FLAMED_MAX_USER_FRAMES);
    CHECK(walked.addresses[FLAMED_MAX_USER_FRAMES] == 0xabcd);
  }
}

}  // namespace
}  // namespace flamed
