// SPDX-License-Identifier: Apache-2.0
#include "runtimes/hotspot/interpreter.h"

namespace flamed::runtimes {
namespace {

constexpr std::uint32_t kWord = 8;
/// Of offsets in a Method and a ConstMethod.
constexpr std::uint32_t kMostOffset = 255;
constexpr std::uint8_t kCheckWords = 4;
// DWARF numbers. See templateInterpreterGenerator_x86.cpp.
constexpr std::uint8_t kRbx = 3;   // the Method, until its frame stands
constexpr std::uint8_t kR13 = 13;  // the running bytecode; on entry the caller's stack pointer
constexpr std::uint8_t kR14 = 14;  // the locals

constexpr std::uint8_t below(int words) { return static_cast<std::uint8_t>(-words); }

}  // namespace

std::optional<FrameSlots> interpreter_slots(const HotSpotLayout& layout) {
  using Frame = HotSpotInterpreterFrame;
  constexpr std::uint32_t kJdk8 = 8;
  const HotSpotMethods& methods = layout.methods;
  if (methods.const_method.offset > kMostOffset || methods.constants.offset > kMostOffset ||
      methods.const_method_bytes > kMostOffset || methods.constants.offset % kWord != 0 ||
      methods.const_method_bytes < methods.constants.offset + kCheckWords * kWord) {
    return std::nullopt;
  }
  const bool is_old = layout.version == kJdk8;
  FrameSlots slots;
  slots.function = below(Frame::kMethod);
  slots.code = static_cast<std::uint16_t>(methods.const_method.offset);
  slots.instruction_kind = FrameSlots::Instruction::kAddress;
  slots.instruction = below(is_old ? Frame::kBytecodeJdk8 : Frame::kBytecode);
  slots.first_instruction = static_cast<std::uint16_t>(methods.const_method_bytes);
  slots.guard = below(is_old ? Frame::kLocalsJdk8 : Frame::kLocals);
  slots.guard_register = kR14;
  slots.instruction_register = kR13;
  slots.entry_function_register = kRbx;
  slots.entry_cfa_register = kR13;
  // The constants' address and sizes. The word before, a fingerprint, is computed when it is first needed.
  slots.check = {.at = static_cast<std::uint16_t>(methods.constants.offset), .words = kCheckWords};
  return slots;
}

}  // namespace flamed::runtimes
