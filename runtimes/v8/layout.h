// SPDX-License-Identifier: Apache-2.0
//
// V8Layout: where one build of V8 keeps functions and what names them. Values only; `detect.h` makes them.
#pragma once

#include <cstdint>
#include <string>

#include "runtimes/frame_slots.h"

namespace flamed::runtimes {

struct V8Version {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint16_t build = 0;

  /// "11.3.244".
  [[nodiscard]] std::string text() const;
};

/// Where it is: in the code before its first instruction, or in the object that describes the code.
enum class V8CodeHead : std::uint16_t {
  kCode,        ///< up to 10.x the code object itself
  kDescriptor,  ///< the code has a head with the address of an object that describes it
};

/// Offsets in bytes from an object's address, which is that of its map. Passed on as it is in memory.
struct V8Objects {
  std::uint16_t map_instance_type = 0;  ///< 16 bits

  // In a SharedFunctionInfo, which stands for a function of the source:
  std::uint16_t shared_data = 0;  ///< bytecode, or baseline code
  std::uint16_t shared_name = 0;  ///< a name, or a ScopeInfo
  std::uint16_t shared_script = 0;
  std::uint16_t shared_token_offset = 0;  ///< 16 bits: from the function's first token to its parameters

  // In a ScopeInfo, whose content from there on names.cc explains:
  std::uint16_t scope_flags = 0;   ///< 32 bits
  std::uint16_t scope_locals = 0;  ///< a small integer: their number
  std::uint16_t scope_start = 0;   ///< where the function begins in the source, a small integer; 0: behind the names
  std::uint16_t scope_names = 0;   ///< of the locals, then the function's

  // In a Script:
  std::uint16_t script_source = 0;
  std::uint16_t script_name = 0;
  std::uint16_t script_line_offset = 0;

  // In a BytecodeArray:
  std::uint16_t bytecode_positions = 0;

  // In arrays and strings:
  std::uint16_t array_length = 0;
  std::uint16_t array_data = 0;
  std::uint16_t string_length = 0;  ///< 32 bits
  std::uint16_t string_text = 0;    ///< of a sequential one
  std::uint16_t string_first = 0;   ///< of a concatenated one, as is the next one
  std::uint16_t string_second = 0;
  std::uint16_t string_actual = 0;  ///< of a forwarded one
  std::uint16_t string_parent = 0;  ///< of a part of another one, as is the next one
  std::uint16_t string_offset = 0;
  std::uint16_t string_resource = 0;  ///< the address of an external one's text

  // Code that was compiled at run time:
  V8CodeHead code_head_kind = V8CodeHead::kDescriptor;
  std::uint16_t code_head = 0;        ///< bytes from its map to its first instruction
  std::uint16_t code_descriptor = 0;  ///< with kDescriptor, in the code
  // In the code or its descriptor:
  std::uint16_t code_start = 0;  ///< the address of the first instruction; with kDescriptor
  std::uint16_t code_size = 0;   ///< 32 bits
  std::uint16_t code_flags = 0;  ///< 32 bits; the lowest four are its kind
  std::uint16_t code_data = 0;   ///< of optimised code what it was made of, of baseline code its bytecode
  std::uint16_t code_positions = 0;
  std::uint16_t baseline_kind = 0;
  std::uint16_t data_shared = 0;     ///< of optimised code, in what it was made of: the SharedFunctionInfo ...
  std::uint16_t wrapped_shared = 0;  ///< ... or, if not 0, of what has it there

  // Instance types:
  std::uint16_t shared_type = 0;
  std::uint16_t scope_type = 0;
  std::uint16_t script_type = 0;
  std::uint16_t bytecode_type = 0;
  std::uint16_t position_type = 0;    ///< of arrays of bytes
  std::uint16_t code_type = 0;        ///< of what has the instructions
  std::uint16_t descriptor_type = 0;  ///< of what describes them: the same with kCode
};

struct V8Layout {
  V8Version version;
  FrameSlots frames;
  V8Objects objects;
};

}  // namespace flamed::runtimes
