// SPDX-License-Identifier: Apache-2.0
//
// FrameSlots: where frames of a runtime that keeps frame pointers have what they run. Numbers only, like LinkedFrames:
// one pass of the kernel program reads those of all such runtimes (bpf/frame_slots.h).
#pragma once

#include <cstdint>

namespace flamed::runtimes {

struct FrameSlots {
  // In words of 8 bytes below the frame pointer:
  std::uint8_t mark = 0;       ///< tells the runtime's frames from others: ...
  std::uint8_t mark_bits = 0;  ///< ... some of these are set in its lowest byte
  std::uint8_t function = 0;
  std::uint8_t instruction = 0;  ///< a small integer: the number is in the upper 32 bits, the lower ones are 0

  /// In the innermost frame, while the register has the word at `guard`, the instruction is in another register. DWARF
  /// numbers.
  std::uint8_t guard = 0;
  std::uint8_t guard_register = 0;
  std::uint8_t instruction_register = 0;

  std::uint16_t code = 0;               ///< in a function: the address of its code object
  std::uint16_t first_instruction = 0;  ///< the number of the first one

  /// In a code object: words of 8 bytes that tell it from another one that has had its address.
  std::uint16_t check = 0;
  std::uint8_t check_words = 0;
};

}  // namespace flamed::runtimes
