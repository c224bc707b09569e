// SPDX-License-Identifier: Apache-2.0
#include "unwinder/step.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "test/catch.h"
#include "unwinder/signal_return.h"

namespace flamed::unwinder {
namespace {

struct Memory {
  std::map<std::uint64_t, std::uint64_t> words;
  std::optional<std::uint64_t> operator()(std::uint64_t address) const {
    const auto found = words.find(address);
    return found == words.end() ? std::nullopt : std::optional(found->second);
  }
};

constexpr Architecture kX86 = Architecture::kX86_64;

Rule rule_with(CfaKind cfa, std::int32_t offset) {
  Rule rule;
  rule.cfa = cfa;
  rule.cfa_offset = offset;
  rule.ra_offset = -8;
  return rule;
}

WalkFrame at(std::uint64_t sp, std::uint64_t fp = 0x9000) {
  WalkFrame frame;
  frame.pc = 0x40'0000;
  frame.sp = sp;
  frame.fp = fp;
  return frame;
}

TEST_CASE("A frame without a frame pointer steps to its caller, whose pc is a return address") {
  WalkFrame frame = at(0x1000);
  const Memory memory{{{0x1018, 0x40'1234}}};
  CHECK(step(rule_with(CfaKind::kSpOffset, 32), kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.pc == 0x40'1234);
  CHECK(frame.sp == 0x1020);
  CHECK(frame.fp == 0x9000);
  CHECK(frame.lookup_address() == 0x40'1233);
}

TEST_CASE("A frame with a frame pointer yields the caller's frame pointer, too") {
  WalkFrame frame = at(0x1000, 0x1100);
  Rule rule = rule_with(CfaKind::kFpOffset, 16);
  rule.fp = FpKind::kAtCfa;
  rule.fp_offset = -16;
  const Memory memory{{{0x1100, 0x2200}, {0x1108, 0x40'1234}}};
  CHECK(step(rule, kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.sp == 0x1110);
  CHECK(frame.fp == 0x2200);
}

TEST_CASE("A realigned frame reads its CFA from memory and the caller's frame pointer at its own frame pointer") {
  WalkFrame frame = at(0x1000, 0x1100);
  Rule rule = rule_with(CfaKind::kFpDeref, -8);
  rule.fp = FpKind::kAtFp;
  const Memory memory{{{0x10f8, 0x1150}, {0x1100, 0x2200}, {0x1148, 0x40'1234}}};
  CHECK(step(rule, kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.sp == 0x1150);
  CHECK(frame.fp == 0x2200);
  CHECK(frame.pc == 0x40'1234);
}

TEST_CASE("A PLT stub has one more word on the stack from its threshold on") {
  Rule rule = rule_with(CfaKind::kPlt, 8);
  rule.plt_threshold = 11;
  const Memory memory{{{0x1000, 0xaaaa}, {0x1008, 0xbbbb}}};
  WalkFrame before = at(0x1000);
  before.pc = 0x40'002a;
  CHECK(step(rule, kX86, before, memory) == StepResult::kNext);
  CHECK(before.pc == 0xaaaa);
  WalkFrame after = at(0x1000);
  after.pc = 0x40'002b;
  CHECK(step(rule, kX86, after, memory) == StepResult::kNext);
  CHECK(after.pc == 0xbbbb);
}

TEST_CASE("A signal frame restores the interrupted registers, also on another stack") {
  WalkFrame frame = at(0x8000);
  const Memory memory{{{0x8000 + 160, 0x1000}, {0x8000 + 120, 0x1100}, {0x8000 + 168, 0x40'5678}}};
  CHECK(step(signal_frame_rule(kX86), kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.sp == 0x1000);
  CHECK(frame.fp == 0x1100);
  CHECK(frame.pc == 0x40'5678);
  CHECK(frame.interrupted);
  CHECK(frame.lookup_address() == 0x40'5678);
}

TEST_CASE("On arm64 a signal frame restores lr, which an interrupted leaf function needs") {
  WalkFrame frame = at(0x8000);
  const Rule rule = signal_frame_rule(Architecture::kArm64);
  const auto offset = [](std::int32_t value) { return 0x8000 + static_cast<std::uint64_t>(value); };
  const Memory memory{{{offset(rule.cfa_offset), 0x1000},
                       {offset(rule.fp_offset), 0x1100},
                       {offset(rule.fp_offset) + 8, 0x40'9999},
                       {offset(rule.ra_offset), 0x40'5678}}};
  REQUIRE(step(rule, Architecture::kArm64, frame, memory) == StepResult::kNext);
  Rule leaf;
  leaf.cfa = CfaKind::kSpOffset;
  leaf.ra = RaKind::kInLr;
  CHECK(step(leaf, Architecture::kArm64, frame, memory) == StepResult::kNext);
  CHECK(frame.pc == 0x40'9999);
  CHECK(frame.sp == 0x1000);
  // A caller's lr is not known, since the call overwrote it.
  CHECK(step(leaf, Architecture::kArm64, frame, memory) == StepResult::kNotGrowing);
  leaf.cfa_offset = 16;
  CHECK(step(leaf, Architecture::kArm64, frame, memory) == StepResult::kUnknownRegister);
}

TEST_CASE("A signed return address loses its signature") {
  WalkFrame frame = at(0x1000);
  frame.lr = 0x0055'0000'0040'1234;
  frame.lr_known = true;
  Rule rule;
  rule.cfa = CfaKind::kSpOffset;
  rule.ra = RaKind::kInLr;
  rule.ra_signed = 1;
  CHECK(step(rule, Architecture::kArm64, frame, Memory{}) == StepResult::kNext);
  CHECK(frame.pc == 0x40'1234);
}

TEST_CASE("A signed return address that a frame pointer leads to loses its signature, on arm64 alone") {
  const Memory memory{{{0x1100, 0x1200}, {0x1108, 0x0055'0000'0040'1234}}};
  WalkFrame frame = at(0x1000, 0x1100);
  CHECK(step_by_frame_pointer(Architecture::kArm64, frame, memory) == StepResult::kNext);
  CHECK(frame.pc == 0x40'1234);
  frame = at(0x1000, 0x1100);
  CHECK(step_by_frame_pointer(kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.pc == 0x0055'0000'0040'1234);
}

TEST_CASE("The code that signal handlers of arm64 return to is known by its instructions") {
  std::array<std::uint32_t, 6> code{0xd503201f, 0xd2801168, 0xd2801168, 0xd4000001, 0xd503201f, 0xd2801168};
  CHECK(find_signal_return(Architecture::kArm64, std::as_bytes(std::span(code))) == 8);
  CHECK_FALSE(find_signal_return(Architecture::kArm64, std::as_bytes(std::span(code).first(3))));
  CHECK_FALSE(find_signal_return(Architecture::kArm64, std::as_bytes(std::span(code).last(2))));
  CHECK_FALSE(find_signal_return(Architecture::kArm64, {}));
  CHECK_FALSE(find_signal_return(kX86, std::as_bytes(std::span(code))));
}

TEST_CASE("The base register is known as long as each rule says where its caller's is") {
  constexpr std::uint8_t kRbx = 3;
  AllRegisters registers{};
  registers[kRbx] = 0x2000;
  Rule by_base = rule_with(CfaKind::kRegisterOffset, 16);
  by_base.other_register = kRbx;
  const Memory memory{
      {{0x1008, 0x40'1000}, {0x1010, 0x3000}, {0x1028, 0x40'2000}, {0x2008, 0x40'3000}, {0x3008, 0x40'3000}}};

  WalkFrame kept = at(0x1000);
  kept.registers = &registers;
  Rule same = rule_with(CfaKind::kSpOffset, 16);
  same.base_words = kSameBase;
  same.other_register = kRbx;
  REQUIRE(step(same, kX86, kept, memory) == StepResult::kNext);
  CHECK(kept.base == 0x2000);

  WalkFrame lost = kept;
  REQUIRE(step(rule_with(CfaKind::kSpOffset, 32), kX86, lost, memory) == StepResult::kNext);
  CHECK(step(by_base, kX86, lost, memory) == StepResult::kUnknownRegister);

  WalkFrame saved = lost = kept;
  Rule saves = rule_with(CfaKind::kSpOffset, 32);
  saves.ra_offset = -8;
  saves.base_words = 4;
  REQUIRE(step(saves, kX86, saved, memory) == StepResult::kNext);
  CHECK(saved.base == 0x3000);
  REQUIRE(step(by_base, kX86, saved, memory) == StepResult::kNext);
  CHECK(saved.sp == 0x3010);

  REQUIRE(step(by_base, kX86, kept, memory) == StepResult::kNext);
  CHECK(kept.sp == 0x2010);
  CHECK(kept.pc == 0x40'3000);
  CHECK_FALSE(kept.base);
}

TEST_CASE("Behind a signal frame all registers are those that the kernel has saved") {
  const std::uint64_t frame_at = 0x8000;
  const std::uint64_t saved_at = frame_at + 40;
  const auto with_register = [&](std::uint8_t number, std::uint64_t word) {
    Memory memory{
        {{frame_at + 160, 0x1000}, {frame_at + 120, 0x1100}, {frame_at + 168, 0x40'5678}, {0x1ff8, 0x40'1234}}};
    memory.words[saved_at + 8 * word] = 0x2000;
    WalkFrame frame = at(frame_at);
    REQUIRE(step(signal_frame_rule(kX86), kX86, frame, memory) == StepResult::kNext);
    Rule rule = rule_with(CfaKind::kRegisterOffset, 0);
    rule.other_register = number;
    const StepResult result = step(rule, kX86, frame, memory);
    return result == StepResult::kNext ? frame.pc : 0;
  };
  // struct sigcontext: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
  const std::array<std::uint8_t, 17> in_order{8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16};
  std::uint8_t word = 0;
  for (const std::uint8_t number : in_order) {
    CAPTURE(int{number});
    if (number != 7 && number != 16) CHECK(with_register(number, word) == 0x40'1234);
    ++word;
  }
  CHECK(with_register(17, 17) == 0);
}

TEST_CASE("Rules by other registers work in the interrupted frame only") {
  AllRegisters registers{};
  registers[10] = 0x2000;
  registers[5] = 0x40'4321;
  WalkFrame frame = at(0x1000);
  frame.registers = &registers;
  Rule rule = rule_with(CfaKind::kRegisterOffset, 0);
  rule.other_register = 10;
  const Memory memory{{{0x1ff8, 0x40'1234}}};
  CHECK(step(rule, kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.pc == 0x40'1234);
  CHECK(step(rule, kX86, frame, memory) == StepResult::kUnknownRegister);

  WalkFrame vfork = at(0x1000);
  vfork.registers = &registers;
  Rule in_register;
  in_register.cfa = CfaKind::kSpOffset;
  in_register.ra = RaKind::kInRegister;
  in_register.other_register = 5;
  CHECK(step(in_register, kX86, vfork, memory) == StepResult::kNext);
  CHECK(vfork.pc == 0x40'4321);
  CHECK(vfork.sp == 0x1000);
}

TEST_CASE("Each end of a walk has its reason") {
  WalkFrame frame = at(0x1000);
  Rule rule;
  CHECK(step(rule, kX86, frame, Memory{}) == StepResult::kNoInformation);
  rule.cfa = CfaKind::kUnsupported;
  CHECK(step(rule, kX86, frame, Memory{}) == StepResult::kUnsupported);
  rule.cfa = CfaKind::kOutermost;
  CHECK(step(rule, kX86, frame, Memory{}) == StepResult::kOutermost);
  CHECK(step(rule_with(CfaKind::kSpOffset, 32), kX86, frame, Memory{}) == StepResult::kUnreadable);
  CHECK(step(rule_with(CfaKind::kSpDeref, 32), kX86, frame, Memory{}) == StepResult::kUnreadable);
  CHECK(step(rule_with(CfaKind::kSpOffset, 0), kX86, frame, Memory{}) == StepResult::kNotGrowing);
  CHECK(step(rule_with(CfaKind::kFpOffset, -0x9000), kX86, frame, Memory{}) == StepResult::kNotGrowing);
  CHECK(frame.sp == 0x1000);
}

TEST_CASE("A lost frame pointer ends only walks that need it") {
  WalkFrame frame = at(0x1000);
  Rule rule = rule_with(CfaKind::kSpOffset, 8);
  rule.fp = FpKind::kUnknown;
  const Memory memory{{{0x1000, 0x40'1234}, {0x1008, 0x40'1235}, {0x1010, 0x40'1236}}};
  REQUIRE(step(rule, kX86, frame, memory) == StepResult::kNext);
  CHECK_FALSE(frame.fp_known);
  REQUIRE(step(rule_with(CfaKind::kSpOffset, 8), kX86, frame, memory) == StepResult::kNext);
  CHECK_FALSE(frame.fp_known);
  CHECK(step(rule_with(CfaKind::kFpOffset, 16), kX86, frame, memory) == StepResult::kUnknownRegister);
}

/// A thread's g, m and goroutine, and their stacks.
constexpr std::uint64_t kThreadPointer = 0x100;
constexpr std::uint64_t kG0 = 0x200;
constexpr std::uint64_t kM = 0x300;
constexpr std::uint64_t kG = 0x400;
constexpr std::int32_t kCurrentGoroutine = 0xc0;

Memory go_memory(std::map<std::uint64_t, std::uint64_t> more) {
  more.insert({{kThreadPointer - 8, kG0}, {kG0 + GoLayout::kThread, kM}, {kM, kG0}, {kM + kCurrentGoroutine, kG}});
  return {std::move(more)};
}

Rule saved_in(std::int32_t owner, std::int32_t above_sp) {
  Rule rule = rule_with(CfaKind::kGoSaved, above_sp);
  rule.cfa_addend = owner;
  rule.other_register = 1;
  rule.fp = FpKind::kAtCfa;
  rule.fp_offset = -16;
  return rule;
}

WalkFrame on_system_stack(std::uint64_t sp) {
  WalkFrame frame = at(sp);
  frame.thread_pointer = kThreadPointer;
  return frame;
}

TEST_CASE("From Go's system stack a walk goes on where the goroutine called, which may be lower") {
  const Memory memory = go_memory({{kG + GoLayout::kSavedSp, 0x1000}, {0x1000, 0x1100}, {0x1008, 0x40'1234}});
  WalkFrame frame = on_system_stack(0x8000);
  CHECK(step(saved_in(kCurrentGoroutine, 16), kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.sp == 0x1010);
  CHECK(frame.fp == 0x1100);
  CHECK(frame.pc == 0x40'1234);
  CHECK_FALSE(frame.interrupted);
}

TEST_CASE("From the code that enlarges a Go stack a walk goes on at the saved pc") {
  const Memory memory = go_memory({{kG + GoLayout::kSavedSp, 0x1000}, {kG + GoLayout::kSavedPc, 0x40'1234}});
  Rule rule = saved_in(kCurrentGoroutine, 0);
  rule.ra = RaKind::kInGo;
  rule.ra_offset = GoLayout::kSavedPc;
  rule.fp = FpKind::kUnknown;
  WalkFrame frame = on_system_stack(0x8000);
  CHECK(step(rule, kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.sp == 0x1000);
  CHECK(frame.pc == 0x40'1234);
  CHECK_FALSE(frame.fp_known);
}

TEST_CASE("A Go system stack that works for no goroutine is whole") {
  const Memory memory = go_memory({{kM + kCurrentGoroutine + 8, 0}});
  WalkFrame frame = on_system_stack(0x8000);
  CHECK(step(saved_in(kCurrentGoroutine + 8, 16), kX86, frame, memory) == StepResult::kOutermost);
}

TEST_CASE("A Go system stack ends a walk that does not know the thread pointer") {
  WalkFrame frame = at(0x8000);
  CHECK(step(saved_in(kCurrentGoroutine, 16), kX86, frame, go_memory({})) == StepResult::kUnknownRegister);
}

TEST_CASE("A call from Go to C is left by the saved distance from the end of the goroutine's stack") {
  Rule rule = rule_with(CfaKind::kGoDepth, 0x28);
  rule.cfa_addend = 8;
  const Memory memory =
      go_memory({{0x8028, 0x500}, {0x8030, kG}, {kG + GoLayout::kStackEnd, 0x1500}, {0x1000, 0x40'1234}});
  WalkFrame frame = at(0x8000);
  CHECK(step(rule, kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.sp == 0x1008);
  CHECK(frame.pc == 0x40'1234);
}

TEST_CASE("Each call from C to Go is left to the place on the system stack that it saved") {
  // The inner call's frame is at 0x7000 and holds the place of the outer one.
  const Memory memory = go_memory({{kG0 + GoLayout::kSavedSp, 0x7000},
                                   {0x7000, 0x7800},
                                   {0x7018, 0x7100},
                                   {0x7020, 0x40'1111},
                                   {0x7800, 0x7f00},
                                   {0x7818, 0x7900},
                                   {0x7820, 0x40'2222}});
  WalkFrame frame = on_system_stack(0x1000);
  CHECK(step(saved_in(0, 0x28), kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.pc == 0x40'1111);
  CHECK(frame.sp == 0x7028);
  frame.sp = 0x1200;
  CHECK(step(saved_in(0, 0x28), kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.pc == 0x40'2222);
  CHECK(frame.sp == 0x7828);
}

TEST_CASE("A call from Go to the vdso is left by the frame pointer, which may be lower") {
  Rule rule = rule_with(CfaKind::kGoFrame, 16);
  rule.fp = FpKind::kAtCfa;
  rule.fp_offset = -16;
  const Memory memory{{{0x1100, 0x2200}, {0x1108, 0x40'1234}}};
  WalkFrame frame = at(0x8000, 0x1100);
  CHECK(step(rule, kX86, frame, memory) == StepResult::kNext);
  CHECK(frame.sp == 0x1110);
  CHECK(frame.fp == 0x2200);
  WalkFrame lost = at(0x8000, 0x1100);
  lost.fp_known = false;
  CHECK(step(rule, kX86, lost, memory) == StepResult::kUnknownRegister);
}

TEST_CASE("Stacks of Go that lead to each other end after some switches") {
  const Memory memory = go_memory({{kG + GoLayout::kSavedSp, 0x1000}, {0x1000, 0x1100}, {0x1008, 0x40'1234}});
  WalkFrame frame = on_system_stack(0x8000);
  for (std::uint32_t i = 0; i < kMaxStackSwitches; ++i) {
    REQUIRE(step(saved_in(kCurrentGoroutine, 16), kX86, frame, memory) == StepResult::kNext);
  }
  CHECK(step(saved_in(kCurrentGoroutine, 16), kX86, frame, memory) == StepResult::kNotGrowing);
}

TEST_CASE("A step by the frame pointer keeps what a later step of Go needs") {
  WalkFrame frame = on_system_stack(0x1000);
  frame.fp = 0x1100;
  frame.stack_switches = 3;
  frame.go_callback = 0x7000;
  CHECK(step_by_frame_pointer(kX86, frame, Memory{{{0x1100, 0x1200}, {0x1108, 0x40'1234}}}) == StepResult::kNext);
  CHECK(frame.thread_pointer == kThreadPointer);
  CHECK(frame.stack_switches == 3);
  CHECK(frame.go_callback == 0x7000);
  CHECK_FALSE(frame.interrupted);
}

}  // namespace
}  // namespace flamed::unwinder
