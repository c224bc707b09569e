// SPDX-License-Identifier: Apache-2.0
//
// A runtime's layout as the kernel program has it. After bpf/linked_frames.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtimes/linked_frames.h"

namespace flamed::runtimes {

inline flamed_linked_layout as_program_layout(const LinkedFrames& frames) {
  flamed_linked_layout to{};
  for (std::size_t i = 0; i < frames.thread_states.size() && i < 2; ++i) {
    const ThreadStatePlace& place = frames.thread_states[i];
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
  to.frame_bytes = static_cast<__u8>(
      std::max({frames.code + 8, frames.previous + 8, frames.instruction / 8 * 8 + 8, frames.boundary / 8 * 8 + 8}));
  to.check = frames.check;
  to.check_words = frames.check_words;
  to.first_instruction = frames.first_instruction;
  to.first_call = frames.first_call;
  to.next_call = frames.next_call;
  return to;
}

}  // namespace flamed::runtimes
