// SPDX-License-Identifier: Apache-2.0
//
// step: from one frame to its caller, by a Rule. The kernel program does the same in C; this is the readable version,
// with which tests compare it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "unwinder/architecture.h"
#include "unwinder/rule.h"

namespace flamed::unwinder {

/// Why a walk ended, or kNext.
enum class StepResult : std::uint8_t {
  kNext,             ///< `frame` is the caller's now
  kOutermost,        ///< there is no caller: the stack is whole
  kNoInformation,    ///< kNone: try frame pointers
  kUnsupported,      ///< unwind information that a Rule can't express
  kUnknownRegister,  ///< the rule needs a register (or frame pointer) that isn't known in this frame
  kUnreadable,       ///< the memory of the rule can't be read
  kNotGrowing,       ///< the caller's frame is not above this one's: a wrong rule, or a damaged stack
};

/// All registers by DWARF number, as they were when the thread was interrupted.
using AllRegisters = std::array<std::uint64_t, 33>;

struct WalkFrame {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;
  /// The code was interrupted at pc (the innermost frame, and code interrupted by a signal); otherwise pc is a return
  /// address, and the call, whose rule applies, is before it.
  bool interrupted = true;
  bool fp_known = true;
  std::uint64_t lr = 0;
  bool lr_known = false;
  /// Only in the innermost frame, if known.
  const AllRegisters* registers = nullptr;
  /// The interrupted frame behind a signal's: the address of its registers, which the kernel saved.
  std::optional<std::uint64_t> saved_registers{};
  /// The base register (RegisterNumbers::base), if known, in all other frames.
  std::optional<std::uint64_t> base{};
  std::optional<std::uint64_t> thread_pointer{};
  std::uint32_t stack_switches = 0;
  /// Where the place on Go's system stack is saved that the next outer call from C into Go left; 0: in the system
  /// stack's g.
  std::uint64_t go_callback = 0;

  /// The address whose rule applies to this frame.
  [[nodiscard]] std::uint64_t lookup_address() const { return interrupted ? pc : pc - 1; }
};

/// The CFA by a rule for Go's stacks. `goroutine`: the one with the saved place, for kGoSaved. kNext, or why there is
/// none.
template <typename ReadMemory>
StepResult go_cfa(const Rule& rule, WalkFrame& frame, ReadMemory&& read, std::uint64_t& cfa, std::uint64_t& goroutine) {
  const auto wide = [](std::int32_t offset) { return static_cast<std::uint64_t>(std::int64_t{offset}); };
  if (rule.cfa == CfaKind::kGoFrame) {
    if (!frame.fp_known) return StepResult::kUnknownRegister;
    cfa = frame.fp + wide(rule.cfa_offset);
    return StepResult::kNext;
  }
  if (rule.cfa == CfaKind::kGoDepth) {
    const std::uint64_t saved = frame.sp + wide(rule.cfa_offset);
    const std::optional<std::uint64_t> depth = read(saved);
    const std::optional<std::uint64_t> of = read(saved + 8);
    if (!depth || !of) return StepResult::kUnreadable;
    const std::optional<std::uint64_t> end = read(*of + GoLayout::kStackEnd);
    if (!end) return StepResult::kUnreadable;
    cfa = *end - *depth + wide(rule.cfa_addend);
    return StepResult::kNext;
  }
  if (!frame.thread_pointer) return StepResult::kUnknownRegister;
  const std::optional<std::uint64_t> current = read(*frame.thread_pointer - std::uint64_t{8} * rule.other_register);
  if (!current) return StepResult::kUnreadable;
  const std::optional<std::uint64_t> thread = read(*current + GoLayout::kThread);
  if (!thread) return StepResult::kUnreadable;
  const std::optional<std::uint64_t> of = read(*thread + wide(rule.cfa_addend));
  if (!of) return StepResult::kUnreadable;
  if (*of == 0) return StepResult::kOutermost;
  goroutine = *of;
  const bool is_system = rule.cfa_addend == 0;
  const std::optional<std::uint64_t> sp =
      read(is_system && frame.go_callback != 0 ? frame.go_callback : goroutine + GoLayout::kSavedSp);
  if (!sp) return StepResult::kUnreadable;
  // The call from C saved the place before it at its stack pointer.
  if (is_system) frame.go_callback = *sp;
  cfa = *sp + wide(rule.cfa_offset);
  return StepResult::kNext;
}

/// `read(address) -> std::optional<std::uint64_t>` reads 8 bytes of the walked thread's memory.
template <typename ReadMemory>
StepResult step(const Rule& rule, Architecture architecture, WalkFrame& frame, ReadMemory&& read) {
  const auto wide = [](std::int32_t offset) { return static_cast<std::uint64_t>(std::int64_t{offset}); };
  const RegisterNumbers numbers = registers_of(architecture);
  const std::uint8_t number = rule.other_register;
  const auto other_register = [&]() -> std::optional<std::uint64_t> {
    if (frame.registers != nullptr) {
      return number < frame.registers->size() ? std::optional((*frame.registers)[number]) : std::nullopt;
    }
    if (frame.saved_registers) {
      const std::optional<std::uint64_t> word = saved_word(architecture, number);
      return word ? read(*frame.saved_registers + *word * sizeof(std::uint64_t)) : std::nullopt;
    }
    return number == numbers.base ? frame.base : std::nullopt;
  };

  const bool needs_fp = rule.cfa == CfaKind::kFpOffset || rule.cfa == CfaKind::kFpDeref ||
                        ((rule.fp == FpKind::kAtFp || rule.ra == RaKind::kAtFp) && rule.cfa > CfaKind::kOutermost &&
                         rule.cfa != CfaKind::kPending);
  if (needs_fp && !frame.fp_known) return StepResult::kUnknownRegister;

  // 1. The CFA, which is the caller's sp.
  std::uint64_t cfa = 0;
  std::uint64_t goroutine = 0;
  bool dereference = false;
  switch (rule.cfa) {
    case CfaKind::kNone:
      return StepResult::kNoInformation;
    case CfaKind::kUnsupported:
    case CfaKind::kPending:
      return StepResult::kUnsupported;
    case CfaKind::kOutermost:
      return StepResult::kOutermost;
    case CfaKind::kSpDeref:
    case CfaKind::kSignalFrame:
      dereference = true;
      [[fallthrough]];
    case CfaKind::kSpOffset:
      cfa = frame.sp + wide(rule.cfa_offset);
      break;
    case CfaKind::kFpDeref:
      dereference = true;
      [[fallthrough]];
    case CfaKind::kFpOffset:
      cfa = frame.fp + wide(rule.cfa_offset);
      break;
    case CfaKind::kPlt:
      cfa = frame.sp + wide(rule.cfa_offset) + ((frame.pc & 15) >= rule.plt_threshold ? 8 : 0);
      break;
    case CfaKind::kRegisterDeref:
    case CfaKind::kRegisterOffset: {
      const std::optional<std::uint64_t> value = other_register();
      if (!value) return StepResult::kUnknownRegister;
      dereference = rule.cfa == CfaKind::kRegisterDeref;
      cfa = *value + wide(rule.cfa_offset);
      break;
    }
    case CfaKind::kGoSaved:
    case CfaKind::kGoDepth:
    case CfaKind::kGoFrame:
      if (const StepResult result = go_cfa(rule, frame, read, cfa, goroutine); result != StepResult::kNext) {
        return result;
      }
      break;
  }
  if (dereference) {
    const std::optional<std::uint64_t> value = read(cfa);
    if (!value) return StepResult::kUnreadable;
    cfa = *value + wide(rule.cfa_addend);
  }
  // A signal handler may run on another stack, above or below the interrupted one. A function whose return address is
  // in a register may have nothing on the stack (arm64 before it saves anything; x86-64 vfork).
  const bool may_stay = frame.interrupted && (rule.ra == RaKind::kInLr || rule.ra == RaKind::kInRegister);
  if (rule.cfa >= CfaKind::kGoSaved) {
    if (++frame.stack_switches > kMaxStackSwitches) return StepResult::kNotGrowing;
  } else if (rule.signal_frame == 0 && (may_stay ? cfa < frame.sp : cfa <= frame.sp)) {
    return StepResult::kNotGrowing;
  }

  // 2. The return address.
  std::optional<std::uint64_t> pc;
  switch (rule.ra) {
    case RaKind::kAtCfa:
      pc = read(cfa + wide(rule.ra_offset));
      break;
    case RaKind::kAtSp:
      pc = read(frame.sp + wide(rule.ra_offset));
      break;
    case RaKind::kAtFp:
      pc = read(frame.fp + wide(rule.ra_offset));
      break;
    case RaKind::kInLr:
      // In a function that has called another one, the link register does not have its own return address any more.
      if (!frame.interrupted || !frame.lr_known) return StepResult::kUnknownRegister;
      pc = frame.lr;
      break;
    case RaKind::kInRegister:
      pc = other_register();
      if (!pc) return StepResult::kUnknownRegister;
      break;
    case RaKind::kInGo:
      pc = read(goroutine + wide(rule.ra_offset));
      break;
  }
  if (!pc) return StepResult::kUnreadable;
  if (rule.ra_signed != 0) pc = without_signature(architecture, *pc);

  // 3. The frame pointer.
  std::optional<std::uint64_t> fp;
  switch (rule.fp) {
    case FpKind::kSame:
      fp = frame.fp;
      break;
    case FpKind::kAtCfa:
      fp = read(cfa + wide(rule.fp_offset));
      break;
    case FpKind::kAtFp:
      fp = read(frame.fp + wide(rule.fp_offset));
      break;
    case FpKind::kAtSp:
      fp = read(frame.sp + wide(rule.fp_offset));
      break;
    case FpKind::kInRegister:
      fp = other_register();
      break;
    case FpKind::kUnknown:
      break;
  }
  const bool fp_was_saved = rule.fp == FpKind::kAtCfa || rule.fp == FpKind::kAtFp || rule.fp == FpKind::kAtSp;
  if (fp_was_saved && !fp) return StepResult::kUnreadable;

  // 4. The link register, known only for interrupted code: the kernel saved it (x30) after the frame pointer (x29).
  std::optional<std::uint64_t> lr;
  if (rule.cfa == CfaKind::kSignalFrame && architecture == Architecture::kArm64) {
    lr = read(frame.sp + wide(rule.fp_offset) + 8);
  }

  // 5. All registers of interrupted code, or the base register.
  std::optional<std::uint64_t> saved_registers;
  std::optional<std::uint64_t> base;
  if (rule.cfa == CfaKind::kSignalFrame) {
    saved_registers = frame.sp + wide(rule.fp_offset) - *saved_word(architecture, numbers.fp) * sizeof(std::uint64_t);
  } else if (rule.base_words == kSameBase) {
    base = other_register();
  } else if (rule.base_words != 0) {
    base = read(cfa - std::uint64_t{rule.base_words} * sizeof(std::uint64_t));
  }

  frame.fp_known = fp.has_value() && (rule.fp != FpKind::kSame || frame.fp_known);
  frame.fp = fp.value_or(0);
  frame.sp = cfa;
  frame.pc = *pc;
  frame.interrupted = rule.signal_frame != 0;
  frame.registers = nullptr;
  frame.saved_registers = saved_registers;
  frame.base = base;
  frame.lr = lr.value_or(0);
  frame.lr_known = lr.has_value();
  return StepResult::kNext;
}

/// Follows the frame pointer, for code without rules, where it may have any value: kNoInformation if it leads nowhere.
/// Nothing says whether that code signs its return addresses.
template <typename ReadMemory>
StepResult step_by_frame_pointer(Architecture architecture, WalkFrame& frame, ReadMemory&& read) {
  if (!frame.fp_known) return StepResult::kNoInformation;
  if (frame.fp == 0) return StepResult::kOutermost;
  if (frame.fp < frame.sp || frame.fp % 8 != 0) return StepResult::kNoInformation;
  const std::optional<std::uint64_t> caller_fp = read(frame.fp);
  const std::optional<std::uint64_t> return_address = read(frame.fp + 8);
  if (!caller_fp || !return_address) return StepResult::kNoInformation;
  if (*return_address == 0) return *caller_fp == 0 ? StepResult::kOutermost : StepResult::kNoInformation;
  frame.pc = without_signature(architecture, *return_address);
  frame.sp = frame.fp + 16;
  frame.fp = *caller_fp;
  frame.interrupted = false;
  frame.lr = 0;
  frame.lr_known = false;
  frame.registers = nullptr;
  frame.saved_registers.reset();
  frame.base.reset();
  return StepResult::kNext;
}

}  // namespace flamed::unwinder
