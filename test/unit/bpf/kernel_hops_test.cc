// SPDX-License-Identifier: Apache-2.0
//
// Steps from kernel code to its caller, and what rows of the kernel's own tables mean in each of their layouts.
#include <cstdint>
#include <memory>
#include <vector>

#include "test/catch.h"
#include "test/unit/bpf/user_memory.h"

#define bpf_probe_read_user(to, size, from) \
  flamed::test::read_current_memory(to, size, reinterpret_cast<std::uint64_t>(from))
#define bpf_probe_read_kernel(to, size, from) \
  flamed::test::read_current_memory(to, size, reinterpret_cast<std::uint64_t>(from))
#include "bpf/walk/kernel_hops.h"

namespace flamed {
namespace {

using test::UserMemory;

constexpr std::uint64_t kStack = 0xffffc90000004000;  // a page
constexpr std::uint64_t kOtherStack = kStack + 8 * 256;
constexpr std::uint64_t kText = 0xffffffff81001000;
constexpr std::uint32_t kPlace = 0x81001000;
constexpr std::uint32_t kHop = FLAMED_KERNEL_HOP_CALL | 8 << FLAMED_KERNEL_HOP_CFA_SHIFT;

/// Linux 6.4 and later.
std::uint16_t bits(unsigned sp_reg, unsigned bp_reg, unsigned type, unsigned signal = 0) {
  return static_cast<std::uint16_t>(sp_reg | bp_reg << 4 | type << 8 | signal << 11);
}
constexpr unsigned kEnd = 1;
constexpr unsigned kCall = 2;
constexpr unsigned kRegisters = 3;
constexpr unsigned kPartialRegisters = 4;

std::uint32_t hop_of(std::int16_t sp_offset, std::int16_t bp_offset, std::uint16_t row_bits,
                     flamed_orc_layout layout = FLAMED_ORC_SIGNAL) {
  const flamed_orc_row row{sp_offset, bp_offset, row_bits};
  return hop_of_orc_row(&row, layout);
}

/// A page of stack and a frame on it.
class Stack {
 public:
  Stack() : memory(kStack, 512), scope_(memory) {}
  std::uint32_t step(std::uint32_t hop) { return step_by_kernel_hop(&frame, hop, window_.get()); }

  UserMemory memory;
  kernel_frame frame{kText, kStack + 64, kStack + 512, 1};

 private:
  UserMemory::Scope scope_;
  std::unique_ptr<stack_window> window_ = std::make_unique<stack_window>();
};

TEST_CASE("rows of all layouts mean the same in their own encodings") {
  const std::uint32_t call = hop_of(16, -16, bits(FLAMED_ORC_REG_SP, FLAMED_ORC_REG_PREV_SP, kCall));
  CHECK((call & FLAMED_KERNEL_HOP_KIND) == FLAMED_KERNEL_HOP_CALL);
  const std::uint16_t old_call = FLAMED_ORC_REG_SP | FLAMED_ORC_REG_PREV_SP << 4;
  CHECK(hop_of(16, -16, old_call, FLAMED_ORC_END) == call);
  CHECK(hop_of(16, -16, old_call, FLAMED_ORC_SIGNAL_END) == call);

  const std::uint32_t registers = hop_of(0, 0, bits(FLAMED_ORC_REG_SP, 0, kRegisters, 1));
  CHECK((registers & FLAMED_KERNEL_HOP_KIND) == FLAMED_KERNEL_HOP_REGISTERS);
  CHECK((registers & FLAMED_KERNEL_HOP_EXACT) != 0);
  CHECK(hop_of(0, 0, FLAMED_ORC_REG_SP | 1 << 8, FLAMED_ORC_END) == registers);
  CHECK(hop_of(0, 0, FLAMED_ORC_REG_SP | 1 << 8 | 1 << 10, FLAMED_ORC_SIGNAL_END) == registers);

  CHECK(hop_of(0, 0, bits(0, 0, kEnd)) == FLAMED_KERNEL_HOP_END);
  CHECK(hop_of(0, 0, 1 << 10, FLAMED_ORC_END) == FLAMED_KERNEL_HOP_END);
  CHECK(hop_of(0, 0, 1 << 11, FLAMED_ORC_SIGNAL_END) == FLAMED_KERNEL_HOP_END);
}

TEST_CASE("the numbering of registers is recognised by the row of a function's first instruction") {
  constexpr unsigned kNewSp = 3;
  constexpr unsigned kNewBp = 4;
  constexpr unsigned kNewDi = 5;
  constexpr unsigned kNewPrevSp = 8;
  constexpr unsigned kNewSpIndirect = 9;
  constexpr unsigned kNewBpIndirect = 10;
  const auto layout_by = [](std::int16_t sp_offset, std::uint16_t row_bits) {
    const flamed_orc_row row{sp_offset, 0, row_bits};
    return layout_of_first_row(&row);
  };
  CHECK(layout_by(8, bits(FLAMED_ORC_REG_SP, 0, kCall)) == FLAMED_ORC_SIGNAL);
  CHECK(layout_by(8, bits(kNewSp, 0, kCall)) == FLAMED_ORC_RENUMBERED);
  CHECK(layout_by(8, bits(FLAMED_ORC_REG_BP, 0, kCall)) == FLAMED_ORC_UNKNOWN);
  CHECK(layout_by(16, bits(kNewSp, 0, kCall)) == FLAMED_ORC_UNKNOWN);
  CHECK(layout_by(8, bits(kNewSp, 0, kRegisters)) == FLAMED_ORC_UNKNOWN);

  const auto hop = [](std::int16_t sp_offset, std::int16_t bp_offset, unsigned sp_reg, unsigned bp_reg) {
    return hop_of(sp_offset, bp_offset, bits(sp_reg, bp_reg, kCall), FLAMED_ORC_RENUMBERED);
  };
  CHECK(hop(16, -16, kNewSp, kNewPrevSp) == hop_of(16, -16, bits(FLAMED_ORC_REG_SP, FLAMED_ORC_REG_PREV_SP, kCall)));
  CHECK(hop(16, 0, kNewBp, 0) == hop_of(16, 0, bits(FLAMED_ORC_REG_BP, 0, kCall)));
  CHECK(hop(24, 0, kNewSpIndirect, 0) == hop_of(24, 0, bits(FLAMED_ORC_REG_SP_INDIRECT, 0, kCall)));
  CHECK(hop(-24, 0, kNewBpIndirect, kNewBp) ==
        hop_of(-24, 0, bits(FLAMED_ORC_REG_BP_INDIRECT, FLAMED_ORC_REG_BP, kCall)));
  CHECK(hop(8, 0, kNewDi, 0) == FLAMED_KERNEL_HOP_UNSUPPORTED);
  CHECK(hop(8, 0, 1, 0) == FLAMED_KERNEL_HOP_UNSUPPORTED);
}

TEST_CASE("rows that only the kernel's own unwinder understands are left to it") {
  constexpr unsigned kR10 = 6;
  CHECK(hop_of(0, 0, bits(0, 0, 0)) == FLAMED_KERNEL_HOP_UNSUPPORTED);
  CHECK(hop_of(0, 0, 0, FLAMED_ORC_END) == FLAMED_KERNEL_HOP_UNSUPPORTED);
  CHECK(hop_of(8, 0, bits(kR10, 0, kCall)) == FLAMED_KERNEL_HOP_UNSUPPORTED);
  CHECK(hop_of(8, 0, bits(FLAMED_ORC_REG_SP, 0, kPartialRegisters, 1)) == FLAMED_KERNEL_HOP_UNSUPPORTED);
  CHECK(hop_of(8, 0, FLAMED_ORC_REG_SP | 2 << 8, FLAMED_ORC_END) == FLAMED_KERNEL_HOP_UNSUPPORTED);
  CHECK(hop_of(0, -16, bits(FLAMED_ORC_REG_SP, FLAMED_ORC_REG_PREV_SP, kRegisters)) == FLAMED_KERNEL_HOP_UNSUPPORTED);
  CHECK(hop_of(8, -4, bits(FLAMED_ORC_REG_SP, FLAMED_ORC_REG_PREV_SP, kCall)) == FLAMED_KERNEL_HOP_UNSUPPORTED);
  CHECK(hop_of(8, 8, bits(FLAMED_ORC_REG_SP, FLAMED_ORC_REG_PREV_SP, kCall)) == FLAMED_KERNEL_HOP_UNSUPPORTED);
  CHECK(hop_of(8, -8, bits(FLAMED_ORC_REG_SP, FLAMED_ORC_REG_BP, kCall)) == FLAMED_KERNEL_HOP_UNSUPPORTED);
  CHECK(hop_of(8, 0, bits(FLAMED_ORC_REG_SP, 0, kCall), FLAMED_ORC_UNKNOWN) == FLAMED_KERNEL_HOP_UNSUPPORTED);
}

TEST_CASE("the caller is found by a row relative to the stack pointer") {
  Stack stack;
  stack.memory.put(kStack + 64 + 40 - 8, kText + 77);
  stack.memory.put(kStack + 64 + 40 - 24, 4711);
  CHECK(stack.step(hop_of(40, -24, bits(FLAMED_ORC_REG_SP, FLAMED_ORC_REG_PREV_SP, kCall))) == FLAMED_KERNEL_STEP_NEXT);
  CHECK(stack.frame.ip == kText + 77);
  CHECK(stack.frame.sp == kStack + 64 + 40);
  CHECK(stack.frame.bp == 4711);
  CHECK(stack.frame.exact == 0);
}

TEST_CASE("the caller is found by a row relative to the frame pointer, and registers that are not saved stay") {
  Stack stack;
  stack.memory.put(kStack + 512 + 8, kText + 77);
  CHECK(stack.step(hop_of(16, 0, bits(FLAMED_ORC_REG_BP, 0, kCall))) == FLAMED_KERNEL_STEP_NEXT);
  CHECK(stack.frame.ip == kText + 77);
  CHECK(stack.frame.sp == kStack + 512 + 16);
  CHECK(stack.frame.bp == kStack + 512);
}

TEST_CASE("a function that aligned its stack is left by the old stack pointer that it saved") {
  Stack stack;
  stack.memory.put(kStack + 512 - 24, kStack + 1000);
  stack.memory.put(kStack + 1000 - 8, kText + 77);
  stack.memory.put(kStack + 512, 4711);
  CHECK(stack.step(hop_of(-24, 0, bits(FLAMED_ORC_REG_BP_INDIRECT, FLAMED_ORC_REG_BP, kCall))) ==
        FLAMED_KERNEL_STEP_NEXT);
  CHECK(stack.frame.ip == kText + 77);
  CHECK(stack.frame.sp == kStack + 1000);
  CHECK(stack.frame.bp == 4711);
}

TEST_CASE("a walk of the interrupt stack goes on on the stack below it") {
  Stack stack;
  stack.frame.sp = kOtherStack;
  stack.memory.put(kOtherStack, kStack + 64);
  stack.memory.put(kStack + 64 + 24 - 8, kText + 77);
  CHECK(stack.step(hop_of(24, 0, bits(FLAMED_ORC_REG_SP_INDIRECT, 0, kCall))) == FLAMED_KERNEL_STEP_NEXT);
  CHECK(stack.frame.ip == kText + 77);
  CHECK(stack.frame.sp == kStack + 64 + 24);
}

TEST_CASE("a walk goes on exactly at the registers of interrupted kernel code") {
  Stack stack;
  const std::uint64_t registers = kStack + 64 + 8;
  stack.memory.put(registers + FLAMED_REGISTERS_IP, kText + 77);
  stack.memory.put(registers + FLAMED_REGISTERS_CS, 0x10);
  stack.memory.put(registers + FLAMED_REGISTERS_SP, kOtherStack);
  stack.memory.put(registers + FLAMED_REGISTERS_BP, 4711);
  stack.frame.exact = 0;
  CHECK(stack.step(hop_of(8, 0, bits(FLAMED_ORC_REG_SP, 0, kRegisters, 1))) == FLAMED_KERNEL_STEP_NEXT);
  CHECK(stack.frame.ip == kText + 77);
  CHECK(stack.frame.sp == kOtherStack);
  CHECK(stack.frame.bp == 4711);
  CHECK(stack.frame.exact == 1);
}

TEST_CASE("a stack ends at the registers of user space, and at a row that marks the end") {
  Stack stack;
  stack.memory.put(kStack + 64 + FLAMED_REGISTERS_CS, 0x33);
  CHECK(stack.step(hop_of(0, 0, bits(FLAMED_ORC_REG_SP, 0, kRegisters, 1))) == FLAMED_KERNEL_STEP_END);
  CHECK(stack.step(FLAMED_KERNEL_HOP_END) == FLAMED_KERNEL_STEP_END);
}

TEST_CASE("a stack that is not known exactly is not guessed") {
  Stack stack;
  CHECK(stack.step(FLAMED_KERNEL_HOP_UNSUPPORTED) == FLAMED_KERNEL_STEP_UNKNOWN);
  CHECK(stack.step(hop_of(0, 0, bits(FLAMED_ORC_REG_SP, 0, kCall))) == FLAMED_KERNEL_STEP_UNKNOWN);
  stack.frame.bp = kStack;
  CHECK(stack.step(hop_of(16, 0, bits(FLAMED_ORC_REG_BP, 0, kCall))) == FLAMED_KERNEL_STEP_UNKNOWN);
  stack.frame.sp = kStack + 4096;
  CHECK(stack.step(hop_of(16, 0, bits(FLAMED_ORC_REG_SP, 0, kCall))) == FLAMED_KERNEL_STEP_UNKNOWN);
}

TEST_CASE("the last words of a stack's last page are read, and nothing after them") {
  Stack stack;
  stack.frame.sp = kStack + 4096 - 16;
  stack.memory.put(kStack + 4096 - 8, kText + 77);
  CHECK(stack.step(hop_of(16, 0, bits(FLAMED_ORC_REG_SP, 0, kCall))) == FLAMED_KERNEL_STEP_NEXT);
  CHECK(stack.frame.ip == kText + 77);
}

TEST_CASE("only a remembered address of the kernel is found") {
  const auto sites = std::make_unique<kernel_sites>();
  CHECK(find_kernel_hop(sites.get(), kPlace) == 0);
  remember_kernel_hop(sites.get(), kPlace, kHop);
  CHECK(find_kernel_hop(sites.get(), kPlace) == kHop);
  for (std::uint32_t other = kPlace + 1; other < kPlace + 4096; ++other) {
    if (find_kernel_hop(sites.get(), other) != 0) FAIL("found " << other);
  }
}

TEST_CASE("the four addresses of a set that were remembered last are found") {
  const auto sites = std::make_unique<kernel_sites>();
  std::vector<std::uint32_t> same_set;
  for (std::uint32_t place = kPlace; same_set.size() < 5; ++place) {
    if (kernel_site_set(place) == kernel_site_set(kPlace)) same_set.push_back(place);
  }
  for (const std::uint32_t place : same_set) remember_kernel_hop(sites.get(), place, kHop);
  CHECK(find_kernel_hop(sites.get(), same_set[0]) == 0);
  for (std::size_t i = 1; i < same_set.size(); ++i) CHECK(find_kernel_hop(sites.get(), same_set[i]) == kHop);
}

}  // namespace
}  // namespace flamed
