// SPDX-License-Identifier: Apache-2.0
//
// LinkedFrames: where a runtime that keeps its frames in a list has them. Numbers only: one walker follows the lists of
// all such runtimes. Offsets are in bytes, addresses those of the module, see ProgramImage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtimes/code_check.h"

namespace flamed::runtimes {

/// Where the address of the running thread's state is.
struct ThreadStatePlace {
  enum class Kind : std::uint64_t {
    kThreadLocal,  ///< at the thread pointer plus `offset`
    kThreadBlock,  ///< at `offset` in the module's block of thread-local variables, whose number is at `address`
    kThreadKey,    ///< the value of the pthread key whose number (32 bits) is at `address`
    kGlobal,       ///< at `address`, for whichever thread runs
  };
  Kind kind = Kind::kThreadLocal;
  std::int64_t offset = 0;
  std::uint64_t address = 0;

  friend bool operator==(const ThreadStatePlace&, const ThreadStatePlace&) = default;
};

/// The library that implements thread keys and blocks of thread-local variables.
enum class ThreadLibrary : std::uint8_t { kUnknown, kGlibc, kMusl };

struct LinkedFrames {
  /// Tried in this order.
  std::vector<ThreadStatePlace> thread_states;
  ThreadLibrary thread_library = ThreadLibrary::kUnknown;

  // In a thread state:
  std::uint16_t thread_id = 0;           ///< its thread's pthread_self(); on x86-64 that is the thread pointer
  std::vector<std::uint16_t> innermost;  ///< from the thread state to the innermost frame: each offset has an address

  // In a frame:
  std::uint16_t code = 0;
  std::uint16_t previous = 0;  ///< the caller; null: there is none
  std::uint16_t instruction = 0;
  enum class Instruction : std::uint8_t {
    kAddress,     ///< 64 bits; the first instruction is `first_instruction` behind the start of the code object
    kByteOffset,  ///< 32 bits, signed
    kIndex,       ///< 32 bits, signed, in instructions
  };
  Instruction instruction_kind = Instruction::kAddress;
  std::uint16_t first_instruction = 0;

  CodeCheck check;
  /// A count that changes before another code object has the address of one, at `generation` in the interpreter whose
  /// address is at `interpreter` in a thread state. 0: there is none.
  std::uint16_t interpreter = 0;
  std::uint32_t generation = 0;
  /// In a code object: the addresses of its name, its file and its lines. 0: there are none.
  std::array<std::uint16_t, 3> parts{};

  /// How native code that called the runtime is recognised.
  enum class Boundary : std::uint8_t {
    kEachFrame,  ///< one native frame runs each frame
    kMarked,     ///< `boundary` (8 bits) is not 0 in a frame that native code called
    kOwnFrame,   ///< `boundary` is at least `boundary_value` in a frame without code, which lies on the native stack
  };
  Boundary boundary_kind = Boundary::kOwnFrame;
  std::uint16_t boundary = 0;
  std::uint8_t boundary_value = 0;
  /// With kMarked: each call from native code has an entry of a list on the native stack, innermost first.
  std::uint16_t first_call = 0;  ///< in a thread state
  std::uint16_t next_call = 0;   ///< in an entry
};

}  // namespace flamed::runtimes
