// SPDX-License-Identifier: Apache-2.0
//
// Walks linked frames as plainly as possible, through a RemoteMemory. glibc on x86-64 only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtimes/linked_frames.h"
#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

struct PlainFrame {
  std::uint64_t address = 0;
  std::uint64_t code = 0;
  std::int64_t instruction = 0;       ///< in units of two bytes
  bool is_outermost_of_call = false;  ///< native code called it
};

/// 0: there is none at this place.
inline std::uint64_t thread_state_at(RemoteMemory& memory, const ThreadStatePlace& place, std::uint64_t base,
                                     std::uint64_t thread_pointer) {
  using Kind = ThreadStatePlace::Kind;
  constexpr std::uint64_t kKeyValues = 0x310;  // struct pthread's specific_1stblock: {sequence, value}
  const auto word = [&](std::uint64_t address) { return read_number<std::uint64_t>(memory, address).value_or(0); };
  switch (place.kind) {
    case Kind::kThreadLocal:
      return word(thread_pointer + static_cast<std::uint64_t>(place.offset));
    case Kind::kThreadBlock: {
      const std::uint64_t blocks = word(thread_pointer + 8);
      const std::uint64_t block = word(blocks + 16 * word(base + place.address));
      return word(block + static_cast<std::uint64_t>(place.offset));
    }
    case Kind::kThreadKey: {
      const std::uint64_t key = word(base + place.address) & 0xffffffff;
      return key < 32 ? word(thread_pointer + kKeyValues + 16 * key + 8) : 0;
    }
    case Kind::kGlobal:
      return word(base + place.address);
  }
  return 0;
}

/// The state of this thread, by the first place that has it.
inline std::uint64_t thread_state_of(RemoteMemory& memory, const LinkedFrames& layout, std::uint64_t base,
                                     std::uint64_t thread_pointer) {
  for (const ThreadStatePlace& place : layout.thread_states) {
    const std::uint64_t state = thread_state_at(memory, place, base, thread_pointer);
    if (state != 0 && read_number<std::uint64_t>(memory, state + layout.thread_id) == thread_pointer) return state;
  }
  return 0;
}

/// Innermost first. Boundary frames without code are left out.
inline std::vector<PlainFrame> walk_linked_frames(RemoteMemory& memory, const LinkedFrames& layout, std::uint64_t base,
                                                  std::uint64_t thread_pointer) {
  using Boundary = LinkedFrames::Boundary;
  using Instruction = LinkedFrames::Instruction;
  constexpr std::size_t kMost = 10'000;
  std::vector<PlainFrame> frames;
  std::uint64_t at = thread_state_of(memory, layout, base, thread_pointer);
  if (at == 0) return frames;
  for (const std::uint16_t offset : layout.innermost) at = read_number<std::uint64_t>(memory, at + offset).value_or(0);
  while (at != 0 && frames.size() < kMost) {
    const auto code = read_number<std::uint64_t>(memory, at + layout.code);
    const auto previous = read_number<std::uint64_t>(memory, at + layout.previous);
    const auto boundary = read_number<std::uint8_t>(memory, at + layout.boundary);
    if (!code || !previous || !boundary) break;
    if (layout.boundary_kind == Boundary::kOwnFrame && *boundary >= layout.boundary_value) {
      if (!frames.empty()) frames.back().is_outermost_of_call = true;
      at = *previous;
      continue;
    }
    PlainFrame frame;
    frame.address = at;
    frame.code = *code & ~std::uint64_t{1};
    frame.is_outermost_of_call =
        layout.boundary_kind == Boundary::kEachFrame || (layout.boundary_kind == Boundary::kMarked && *boundary != 0);
    if (layout.instruction_kind == Instruction::kAddress) {
      const auto address = read_number<std::uint64_t>(memory, at + layout.instruction).value_or(0);
      frame.instruction = static_cast<std::int64_t>(address - frame.code - layout.first_instruction) / 2;
    } else {
      const auto index = read_number<std::int32_t>(memory, at + layout.instruction).value_or(0);
      frame.instruction = layout.instruction_kind == Instruction::kByteOffset && index > 0 ? index / 2 : index;
    }
    frames.push_back(frame);
    at = *previous;
  }
  return frames;
}

}  // namespace flamed::runtimes
