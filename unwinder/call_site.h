// SPDX-License-Identifier: Apache-2.0
//
// Which code may be the caller of code that a program has compiled at run time: a call whose target is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "unwinder/architecture.h"

namespace flamed::unwinder {

/// So many bytes before a return address are enough.
inline constexpr std::size_t kCallBytes = 7;

/// Do the bytes before a return address end in an indirect call? A call through x86-64's instruction pointer, as of the
/// global offset table, is none: it leads to a library.
inline bool is_indirect_call(Architecture architecture, std::span<const std::byte, kCallBytes> before) {
  if (architecture == Architecture::kArm64) {
    std::uint32_t instruction = 0;
    std::memcpy(&instruction, &before[kCallBytes - sizeof(instruction)], sizeof(instruction));
    // BLR, and its forms with pointer authentication (Arm A-profile, "BLR", "BLRA").
    return (instruction & 0xfffffc1fU) == 0xd63f0000U || (instruction & 0xfefff800U) == 0xd63f0800U;
  }
  const auto byte = [&](std::size_t back) { return std::to_integer<unsigned>(before[kCallBytes - back]); };
  // FF /2 (Intel SDM, "CALL"): opcode, ModRM, SIB if its low bits are 4, displacement. `back` is where the opcode
  // stands.
  const auto is_call = [&](std::size_t back, unsigned mode) {
    const unsigned modrm = byte(back - 1);
    return byte(back) == 0xff && modrm >> 6 == mode && (modrm >> 3 & 7) == 2;
  };
  const auto has_sib = [&](std::size_t back) { return (byte(back - 1) & 7) == 4; };
  if (is_call(2, 3)) return true;                                       // a register
  if (is_call(2, 0) && !has_sib(2) && (byte(1) & 7) != 5) return true;  // memory
  if (is_call(3, 0) && has_sib(3) && (byte(1) & 7) != 5) return true;   // memory, with SIB
  if (is_call(3, 1) && !has_sib(3)) return true;                        // with 8 bits of displacement
  if (is_call(4, 1) && has_sib(4)) return true;
  if (is_call(6, 2) && !has_sib(6)) return true;  // with 32 bits
  return is_call(7, 2) && has_sib(7);
}

}  // namespace flamed::unwinder
