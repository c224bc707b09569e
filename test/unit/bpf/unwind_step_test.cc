// SPDX-License-Identifier: Apache-2.0
//
// Compares the kernel program's steps from frame to frame with unwinder/step.h, which defines them.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>

#include "test/catch.h"
#include "test/unit/bpf/user_memory.h"
#include "unwinder/step.h"

#define bpf_probe_read_user(to, size, from) \
  flamed::test::read_current_memory(to, size, reinterpret_cast<std::uint64_t>(from))
#define FLAMED_THREAD_POINTER() flamed::kThreadPointer
namespace flamed {
constexpr std::uint64_t kThreadPointer = 0x7ffc00001400;
}
#include "bpf/walk/known_sites.h"
#include "bpf/walk/unwind_search.h"
#include "bpf/walk/unwind_step.h"

namespace flamed {
namespace {

using test::UserMemory;
using unwinder::AllRegisters;
using unwinder::Architecture;
using unwinder::CfaKind;
using unwinder::FpKind;
using unwinder::RaKind;
using unwinder::Rule;
using unwinder::StepResult;
using unwinder::WalkFrame;

#if defined(__TARGET_ARCH_arm64)
constexpr Architecture kArchitecture = Architecture::kArm64;
#else
constexpr Architecture kArchitecture = Architecture::kX86_64;
#endif

constexpr std::uint64_t kStack = 0x7ffc00001000;
constexpr std::size_t kStackWords = 256;

std::array<__u64, FLAMED_REGISTERS> as_program_registers(const AllRegisters& registers) {
  return std::bit_cast<std::array<__u64, FLAMED_REGISTERS>>(registers);
}

flamed_unwind_rule as_program_rule(const Rule& rule) { return std::bit_cast<flamed_unwind_rule>(rule); }

walk_frame as_program_frame(const WalkFrame& frame) {
  walk_frame to{};
  to.pc = frame.pc;
  to.sp = frame.sp;
  to.fp = frame.fp;
  to.lr = frame.lr;
  to.interrupted = frame.interrupted ? 1 : 0;
  to.fp_known = frame.fp_known ? 1 : 0;
  to.lr_known = frame.lr_known ? 1 : 0;
  if (frame.registers != nullptr) {
    to.known = FLAMED_KNOWN_ALL;
  } else if (frame.saved_registers) {
    to.known = FLAMED_KNOWN_SAVED;
    to.base = *frame.saved_registers;
  } else if (frame.base) {
    to.known = FLAMED_KNOWN_BASE;
    to.base = *frame.base;
  }
  to.stack_switches = frame.stack_switches;
  to.go_callback = frame.go_callback;
  return to;
}

bool is_same(const walk_frame& a, const walk_frame& b) {
  return a.pc == b.pc && a.sp == b.sp && a.fp_known == b.fp_known && (a.fp_known == 0 || a.fp == b.fp) &&
         a.interrupted == b.interrupted && a.lr_known == b.lr_known && (a.lr_known == 0 || a.lr == b.lr) &&
         a.known == b.known && (a.known == FLAMED_KNOWN_NONE || a.base == b.base) &&
         a.stack_switches == b.stack_switches && a.go_callback == b.go_callback;
}

/// The program's result where step() returns `result`. The program ends a walk at a return address of 0, which step()
/// leaves to its caller.
std::uint32_t as_program_result(StepResult result, const WalkFrame& after) {
  switch (result) {
    case StepResult::kNext:
      return after.pc == 0 ? FLAMED_END_OUTERMOST : FLAMED_STEP_NEXT;
    case StepResult::kOutermost:
      return FLAMED_END_OUTERMOST;
    case StepResult::kNoInformation:
      return FLAMED_END_NO_INFORMATION;
    case StepResult::kUnsupported:
      return FLAMED_END_UNSUPPORTED;
    case StepResult::kUnknownRegister:
      return FLAMED_END_UNKNOWN_REGISTER;
    case StepResult::kUnreadable:
      return FLAMED_END_UNREADABLE;
    case StepResult::kNotGrowing:
      return FLAMED_END_NOT_GROWING;
  }
  return 0;
}

class RandomWalk {
 public:
  explicit RandomWalk(std::uint32_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  /// Mostly an address on the stack, sometimes near its ends or any number.
  std::uint64_t value() {
    switch (below(10)) {
      case 0:
        return 0;
      case 1:
        return random_();
      case 2:
        return kStack + kStackWords * 8 - below(24);
      case 3:
        return kStack - 16 + below(32);
      default:
        return kStack + below(kStackWords) * 8;
    }
  }
  std::int32_t offset() {
    if (one_in(20)) return static_cast<std::int32_t>(random_());
    return static_cast<std::int32_t>(below(64)) * 8 - 128;
  }
  std::uint8_t register_number() {
    if (one_in(3)) return FLAMED_BASE_REGISTER;
    return static_cast<std::uint8_t>(below(one_in(8) ? 256 : 33));
  }
  /// Any kind but kNone.
  Rule rule() {
    Rule rule;
    rule.cfa = static_cast<CfaKind>(1 + below(unwinder::kCfaKinds - 1));
    // They read several words after each other, of which most can't be read.
    if (one_in(3)) rule.cfa = one_in(4) ? CfaKind::kGoDepth : CfaKind::kGoSaved;
    rule.fp = static_cast<FpKind>(below(6));
    rule.ra = static_cast<RaKind>(below(unwinder::kRaKinds));
    rule.signal_frame = one_in(6) ? 1 : 0;
    // x86-64 has no signed return addresses, and its program has no code for them.
    rule.ra_signed = kArchitecture == Architecture::kArm64 && one_in(3) ? 1 : 0;
    rule.other_register = register_number();
    if (one_in(2)) rule.base_words = one_in(3) ? unwinder::kSameBase : static_cast<std::uint8_t>(below(16));
    rule.cfa_offset = offset();
    rule.cfa_addend = offset();
    rule.plt_threshold = static_cast<std::uint8_t>(below(17));
    rule.fp_offset = offset();
    rule.ra_offset = offset();
    return rule;
  }
  WalkFrame frame(const AllRegisters& registers) {
    WalkFrame frame;
    frame.pc = one_in(2) ? random_() : 0x401000 + below(64);
    frame.sp = one_in(20) ? value() : kStack + below(kStackWords / 2) * 8;
    frame.fp = value();
    frame.lr = value();
    frame.interrupted = one_in(2);
    frame.fp_known = !one_in(4);
    frame.lr_known = !one_in(3);
    switch (below(4)) {
      case 0:
        frame.registers = &registers;
        break;
      case 1:
        frame.saved_registers = value();
        break;
      case 2:
        frame.base = value();
        break;
      default:
        break;
    }
    frame.thread_pointer = kThreadPointer;
    frame.stack_switches = static_cast<std::uint32_t>(below(18));
    if (one_in(3)) frame.go_callback = value();
    return frame;
  }

 private:
  std::mt19937_64 random_;
};

TEST_CASE("a step by any rule has the result and the next frame of unwinder::step()") {
  RandomWalk random(1);
  std::map<std::uint32_t, int> results;
  std::array<int, unwinder::kCfaKinds> nexts{};
  std::map<std::uint32_t, int> known;
  int with_registers = 0;
  for (int round = 0; round < 500'000; ++round) {
    UserMemory memory(kStack, kStackWords);
    if (round % 16 == 0) {
      for (std::size_t i = 0; i < kStackWords; ++i) memory.put(kStack + i * 8, random.value());
    }
    const UserMemory::Scope scope(memory);
    AllRegisters registers{};
    for (std::uint64_t& value : registers) value = random.value();
    const Rule rule = random.rule();
    WalkFrame frame = random.frame(registers);
    walk_frame program_frame = as_program_frame(frame);
    const walk_frame before = program_frame;
    const flamed_unwind_rule program_rule = as_program_rule(rule);

    const StepResult result =
        unwinder::step(rule, kArchitecture, frame, [&](std::uint64_t address) { return memory.word(address); });
    stack_window window{};
    const std::uint32_t program_result =
        step_by_rule(&program_frame, &program_rule, as_program_registers(registers).data(), &window, 1);

    if (needs_registers(&program_rule)) {
      ++with_registers;
    } else {
      walk_frame other_frame = before;
      stack_window other_window{};
      const std::uint32_t other_result =
          step_by_rule(&other_frame, &program_rule, as_program_registers(registers).data(), &other_window, 0);
      if (other_result != program_result ||
          (program_result == FLAMED_STEP_NEXT && !is_same(other_frame, program_frame)))
        FAIL("without registers it differs: " << other_result << " and " << program_result);
    }

    ++results[program_result];
    const std::uint32_t expected = as_program_result(result, frame);
    bool equal = program_result == expected;
    if (result == StepResult::kNext) {
      ++nexts[static_cast<std::size_t>(rule.cfa)];
      ++known[program_frame.known];
      equal = equal && is_same(program_frame, as_program_frame(frame));
    }
    if (equal) continue;
    CAPTURE(round, static_cast<int>(rule.cfa), static_cast<int>(rule.fp), static_cast<int>(rule.ra));
    CAPTURE(static_cast<int>(result), program_result, frame.pc, program_frame.pc, frame.sp, program_frame.sp);
    FAIL("the two differ");
  }
  // The comparison covered every result, and frames left by every kind of rule that leaves a frame.
  for (const std::uint32_t end : {FLAMED_END_OUTERMOST, FLAMED_END_UNREADABLE, FLAMED_END_UNSUPPORTED,
                                  FLAMED_END_UNKNOWN_REGISTER, FLAMED_END_NOT_GROWING}) {
    CAPTURE(end);
    CHECK(results[end] > 500);
  }
  for (std::size_t kind = 3; kind < static_cast<std::size_t>(CfaKind::kPending); ++kind) {
    CAPTURE(kind);
    CHECK(nexts[kind] > 500);
  }
  CHECK(with_registers > 500);
  for (const std::uint32_t kind : {FLAMED_KNOWN_NONE, FLAMED_KNOWN_SAVED, FLAMED_KNOWN_BASE}) {
    CAPTURE(kind);
    CHECK(known[kind] > 500);
  }
}

TEST_CASE("a step by a rule's hop has the result and the next frame of the step by the rule") {
  RandomWalk random(3);
  std::map<std::uint32_t, int> results;
  int by_frame_pointer = 0;
  for (int round = 0; round < 400'000; ++round) {
    UserMemory memory(kStack, kStackWords);
    if (round % 16 == 0) {
      for (std::size_t i = 0; i < kStackWords; ++i) memory.put(kStack + i * 8, random.value());
    }
    const UserMemory::Scope scope(memory);
    const AllRegisters registers{};
    Rule rule = random.rule();
    // Half of them are like compilers' rules, the others are random.
    if (random.one_in(2)) {
      rule.cfa = random.one_in(2) ? CfaKind::kSpOffset : CfaKind::kFpOffset;
      rule.fp = random.one_in(2) ? FpKind::kSame : FpKind::kAtCfa;
      rule.ra = RaKind::kAtCfa;
      rule.base_words = 0;
    }
    if (random.one_in(50)) rule = Rule{};
    if (random.one_in(50)) rule.cfa = CfaKind::kOutermost;
    const flamed_unwind_rule program_rule = as_program_rule(rule);
    const std::uint32_t hop = hop_of_rule(&program_rule);
    if (hop == 0) continue;

    walk_frame by_rule = as_program_frame(random.frame(registers));
    walk_frame by_hop = by_rule;
    stack_window of_rule{};
    stack_window of_hop{};
    const std::uint32_t expected =
        step_by_rule(&by_rule, &program_rule, as_program_registers(registers).data(), &of_rule, 1);
    const bool follows_frame_pointer = hop == FLAMED_HOP_BY_FRAME_POINTER;
    std::uint32_t result = FLAMED_END_OUTERMOST;
    if (hop != FLAMED_HOP_OUTERMOST) {
      result = follows_frame_pointer ? step_by_frame_pointer(&by_hop) : step_by_hop(&by_hop, hop, &of_hop);
    }

    ++results[result];
    if (follows_frame_pointer) ++by_frame_pointer;
    const bool equal =
        result == expected && (result != FLAMED_STEP_NEXT || (is_same(by_hop, by_rule) && by_hop.fp == by_rule.fp));
    if (equal) continue;
    CAPTURE(round, hop, result, expected, rule.cfa_offset, rule.fp_offset, rule.ra_offset);
    FAIL("the two differ");
  }
  CHECK(by_frame_pointer > 500);
  for (const std::uint32_t end :
       {static_cast<std::uint32_t>(FLAMED_STEP_NEXT), static_cast<std::uint32_t>(FLAMED_END_OUTERMOST),
        static_cast<std::uint32_t>(FLAMED_END_UNREADABLE), static_cast<std::uint32_t>(FLAMED_END_UNKNOWN_REGISTER),
        static_cast<std::uint32_t>(FLAMED_END_NOT_GROWING)}) {
    CAPTURE(end);
    CHECK(results[end] > 500);
  }
}

TEST_CASE("a rule of an unknown kind ends the walk as unsupported") {
  const UserMemory memory(kStack, kStackWords);
  const UserMemory::Scope scope(memory);
  walk_frame frame{0x401000, kStack, kStack + 64, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, {}, {}};
  const AllRegisters registers{};
  stack_window window{};
  flamed_unwind_rule rule{};
  for (const int kind : {14, 15, 255}) {
    rule.cfa = static_cast<__u8>(kind);
    CHECK(step_by_rule(&frame, &rule, as_program_registers(registers).data(), &window, 1) == FLAMED_END_UNSUPPORTED);
  }
}

TEST_CASE("vfork's return address in a register leaves the stack unchanged, in the interrupted frame only") {
  const UserMemory memory(kStack, kStackWords);
  const UserMemory::Scope scope(memory);
  constexpr std::uint8_t kRdi = 5;
  Rule rule;
  rule.cfa = CfaKind::kSpOffset;
  rule.ra = RaKind::kInRegister;
  rule.other_register = kRdi;
  const flamed_unwind_rule program_rule = as_program_rule(rule);
  AllRegisters registers{};
  registers[kRdi] = 0x402000;
  stack_window window{};
  walk_frame frame{0x401000, kStack + 64, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, {}, {}};
  CHECK(step_by_rule(&frame, &program_rule, as_program_registers(registers).data(), &window, 1) == FLAMED_STEP_NEXT);
  CHECK(frame.pc == 0x402000);
  CHECK(frame.sp == kStack + 64);
  CHECK(step_by_rule(&frame, &program_rule, as_program_registers(registers).data(), &window, 1) ==
        FLAMED_END_NOT_GROWING);
}

TEST_CASE("code without a rule is left by the frame pointer") {
  UserMemory memory(kStack, kStackWords);
  memory.put(kStack + 64, kStack + 128);
  memory.put(kStack + 72, 0x402000);
  const UserMemory::Scope scope(memory);
  walk_frame frame{0x401000, kStack, kStack + 64, 7, 1, 1, 1, 1, 0, 0, 0, 0, 0, {}, {}};
  const AllRegisters registers{};
  stack_window window{};
  const flamed_unwind_rule none = as_program_rule(Rule{});
  CHECK(step_by_rule(&frame, &none, as_program_registers(registers).data(), &window, 1) == FLAMED_STEP_NEXT);
  CHECK(frame.pc == 0x402000);
  CHECK(frame.sp == kStack + 80);
  CHECK(frame.fp == kStack + 128);
  CHECK(frame.fp_known == 1);
  CHECK(frame.interrupted == 0);
  CHECK(frame.lr_known == 0);
  CHECK(frame.known == FLAMED_KNOWN_NONE);
}

#if defined(__TARGET_ARCH_arm64)
TEST_CASE("code without a rule may have signed its return address") {
  UserMemory memory(kStack, kStackWords);
  memory.put(kStack + 64, kStack + 128);
  memory.put(kStack + 72, 0x0055'0000'0040'2000);
  const UserMemory::Scope scope(memory);
  walk_frame frame{0x401000, kStack, kStack + 64, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, {}, {}};
  CHECK(step_by_frame_pointer(&frame) == FLAMED_STEP_NEXT);
  CHECK(frame.pc == 0x40'2000);
}
#endif

TEST_CASE("a frame pointer's record says whether the stack ends there") {
  struct Case {
    const char* what;
    std::uint64_t fp, saved_fp, return_address;
    std::uint32_t result;
  };
  constexpr std::uint64_t kSp = kStack + 64;
  for (const Case& c : {
           Case{"no frame pointer", 0, 1, 1, FLAMED_END_OUTERMOST},
           Case{"below the stack pointer", kSp - 8, kSp + 64, 0x402000, FLAMED_END_NO_INFORMATION},
           Case{"at the stack pointer", kSp, kSp + 64, 0x402000, FLAMED_STEP_NEXT},
           Case{"not aligned", kSp + 4, kSp + 64, 0x402000, FLAMED_END_NO_INFORMATION},
           Case{"its last word outside", kStack + kStackWords * 8 - 8, 0, 0, FLAMED_END_NO_INFORMATION},
           Case{"not readable", 0x7fff00000000, 0, 0, FLAMED_END_NO_INFORMATION},
           Case{"both 0", kSp + 16, 0, 0, FLAMED_END_OUTERMOST},
           Case{"a return address of 0 only", kSp + 16, kSp + 64, 0, FLAMED_END_NO_INFORMATION},
           Case{"the caller's frame pointer is 0", kSp + 16, 0, 0x402000, FLAMED_STEP_NEXT},
       }) {
    CAPTURE(c.what);
    UserMemory memory(kStack, kStackWords);
    if (memory.word(c.fp)) memory.put(c.fp, c.saved_fp);
    if (memory.word(c.fp + 8)) memory.put(c.fp + 8, c.return_address);
    const UserMemory::Scope scope(memory);
    walk_frame frame{0x401000, kSp, c.fp, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, {}, {}};
    CHECK(step_by_frame_pointer(&frame) == c.result);
    if (c.result != FLAMED_STEP_NEXT) CHECK(frame.pc == 0x401000);
  }
}

TEST_CASE("an unknown frame pointer is not followed") {
  const UserMemory memory(kStack, kStackWords);
  const UserMemory::Scope scope(memory);
  walk_frame frame{0x401000, kStack, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {}, {}};
  CHECK(step_by_frame_pointer(&frame) == FLAMED_END_NO_INFORMATION);
}

TEST_CASE("steps by frame pointer end on any memory, since each goes up the stack") {
  RandomWalk random(7);
  for (int round = 0; round < 500; ++round) {
    UserMemory memory(kStack, kStackWords);
    for (std::size_t i = 0; i < kStackWords; ++i) memory.put(kStack + i * 8, random.value());
    const UserMemory::Scope scope(memory);
    walk_frame frame{0x401000, kStack, kStack + random.below(kStackWords) * 8, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, {}, {}};
    int steps = 0;
    while (step_by_frame_pointer(&frame) == FLAMED_STEP_NEXT && steps <= 1000) ++steps;
    CHECK(steps <= static_cast<int>(kStackWords / 2));
  }
}

}  // namespace
}  // namespace flamed
