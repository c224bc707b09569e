// SPDX-License-Identifier: Apache-2.0
//
// A runtime's layout as the kernel program has it (bpf/linked_layout.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include "bpf/linked_layout.h"
#include "runtimes/frame_slots.h"
#include "runtimes/linked_frames.h"

namespace flamed::daemon {

inline flamed_code_check as_program_check(const runtimes::CodeCheck& check) {
  static_assert(runtimes::kMostCheckWords == FLAMED_MOST_CHECK_WORDS);
  const bool has_text = check.text != 0;
  return {check.at, check.words, check.name, check.file, check.text, static_cast<__u16>(has_text ? sizeof(__u64) : 0)};
}

inline bool is_possible(const runtimes::CodeCheck& check) {
  return check.words > 0 && check.words <= runtimes::kMostCheckWords;
}

/// Empty: its frames are larger than the program's copies, or it has too few or too many places.
inline std::optional<flamed_linked_layout> as_program_layout(const runtimes::LinkedFrames& frames) {
  flamed_linked_layout to{};
  const std::size_t places = frames.thread_states.size();
  if (places == 0 || places > std::size(to.places)) return std::nullopt;
  if (frames.innermost.empty() || frames.innermost.size() > 2) return std::nullopt;
  if (!is_possible(frames.check)) return std::nullopt;
  const int bytes = std::max({frames.code, frames.previous, frames.instruction, frames.boundary}) / 8 * 8 + 8;
  if (bytes >= FLAMED_LINKED_FRAME_BYTES) return std::nullopt;

  for (std::size_t i = 0; i < places; ++i) {
    const runtimes::ThreadStatePlace& place = frames.thread_states[i];
    to.places[i] = {static_cast<__u64>(place.kind) + 1, place.offset, place.address};
  }
  to.thread_id = frames.thread_id;
  to.innermost = frames.innermost[0];
  to.is_indirect = frames.innermost.size() > 1 ? 1 : 0;
  if (to.is_indirect != 0) to.innermost_there = frames.innermost[1];
  to.code = static_cast<__u8>(frames.code);
  to.previous = static_cast<__u8>(frames.previous);
  to.instruction = static_cast<__u8>(frames.instruction);
  to.boundary = static_cast<__u8>(frames.boundary);
  to.boundary_value = frames.boundary_value;
  to.boundary_kind = static_cast<__u8>(frames.boundary_kind);
  to.instruction_kind = static_cast<__u8>(frames.instruction_kind);
  to.frame_bytes = static_cast<__u8>(bytes);
  to.check = as_program_check(frames.check);
  to.interpreter = frames.interpreter;
  to.generation = frames.generation;
  to.first_instruction = frames.first_instruction;
  to.first_call = frames.first_call;
  to.next_call = frames.next_call;
  std::copy(frames.parts.begin(), frames.parts.end(), to.parts);
  return to;
}

/// Empty: its places are out of reach.
inline std::optional<flamed_slot_layout> as_program_layout(const runtimes::FrameSlots& frames) {
  static_assert(static_cast<int>(runtimes::FrameSlots::Instruction::kNumber) == FLAMED_SLOT_NUMBER &&
                static_cast<int>(runtimes::FrameSlots::Instruction::kAddress) == FLAMED_SLOT_ADDRESS);
  const std::uint8_t lowest = frames.lowest();
  if (!is_possible(frames.check) || lowest >= FLAMED_SLOT_WORDS) return std::nullopt;
  flamed_slot_layout to{};
  to.mark = frames.mark;
  to.mark_bits = frames.mark_bits;
  to.function = frames.function;
  to.instruction = frames.instruction;
  to.guard = frames.guard;
  to.guard_register = frames.guard_register;
  to.instruction_register = frames.instruction_register;
  to.lowest = lowest;
  to.code = frames.code;
  to.check = as_program_check(frames.check);
  to.first_instruction = frames.first_instruction;
  to.instruction_kind = static_cast<__u8>(frames.instruction_kind);
  to.entry_function_register = frames.entry_function_register;
  to.entry_cfa_register = frames.entry_cfa_register;
  return to;
}

}  // namespace flamed::daemon
