// SPDX-License-Identifier: Apache-2.0
//
// FrameSlots: where frames of a runtime that keeps frame pointers have what they run. Numbers only, like LinkedFrames:
// one pass of the kernel program reads those of all such runtimes (bpf/walk/frame_slots.h). read_slots() does the same
// with a stack that was copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtimes/code_check.h"

namespace flamed::runtimes {

struct FrameSlots {
  // In words of 8 bytes below the frame pointer:
  std::uint8_t mark = 0;       ///< tells the runtime's frames from others: ...
  std::uint8_t mark_bits = 0;  ///< ... some of these are set in its lowest byte; 0: by their code
  std::uint8_t function = 0;
  std::uint8_t instruction = 0;
  enum class Instruction : std::uint8_t {
    kNumber,   ///< a small integer: the number is in the upper 32 bits, the lower ones are 0
    kAddress,  ///< in the code object
  };
  Instruction instruction_kind = Instruction::kNumber;

  /// In the innermost frame, while the register has the word at `guard`, or the address so many words above the frame
  /// pointer, the instruction is in another register. DWARF numbers.
  std::uint8_t guard = 0;
  std::uint8_t guard_register = 0;
  std::uint8_t instruction_register = 0;

  static constexpr std::uint8_t kNoRegister = 0xff;
  /// The innermost function while its frame is being set up: before it has a frame pointer the walk steps by the
  /// address in the second one.
  std::uint8_t entry_function_register = kNoRegister;
  std::uint8_t entry_cfa_register = kNoRegister;

  std::uint16_t code = 0;               ///< in a function: the address of its code object
  std::uint16_t first_instruction = 0;  ///< the number of the first one, or its offset in the code object

  CodeCheck check;  ///< of words alone

  [[nodiscard]] std::uint8_t lowest() const { return std::max({mark, function, instruction, guard}); }
  friend bool operator==(const FrameSlots&, const FrameSlots&) = default;
};

/// What a frame's slots have. It may be another frame than the runtime's.
struct SlotWords {
  std::uint64_t function = 0;
  std::uint64_t instruction = 0;  ///< as it lies there, or in the register; 0: the function is being entered

  friend bool operator==(const SlotWords&, const SlotWords&) = default;
};

/// Of frames without a mark. `stepped_by`: see unwinder::WalkedStack. `registers`: by DWARF number, of the innermost
/// frame; else empty. `read(address) -> std::optional<std::uint64_t>`. Empty: they can't be read.
template <typename ReadMemory>
std::optional<SlotWords> read_slots(const FrameSlots& slots, std::uint64_t stepped_by,
                                    std::span<const std::uint64_t> registers, ReadMemory&& read) {
  constexpr std::size_t kSp = 7;
  constexpr std::uint64_t kWord = 8;
  const auto value_of = [&](std::uint8_t number) -> std::optional<std::uint64_t> {
    return number < registers.size() ? std::optional(registers[number]) : std::nullopt;
  };
  if (const auto function = value_of(slots.entry_function_register); function && registers.size() > kSp) {
    if (stepped_by == slots.entry_cfa_register || stepped_by - kWord * slots.lowest() < registers[kSp])
      return SlotWords{*function, 0};
  }
  const auto word = [&](std::uint8_t below) { return read(stepped_by - kWord * below); };
  const std::optional<std::uint64_t> function = word(slots.function);
  std::optional<std::uint64_t> instruction = word(slots.instruction);
  if (const auto guard = value_of(slots.guard_register); guard && value_of(slots.instruction_register)) {
    const std::optional<std::uint64_t> expected = word(slots.guard);
    if (expected && (*guard == *expected || *guard == stepped_by + kWord * *expected))
      instruction = value_of(slots.instruction_register);
  }
  if (!function || !instruction) return std::nullopt;
  return SlotWords{*function, *instruction};
}

}  // namespace flamed::runtimes
