// SPDX-License-Identifier: Apache-2.0
//
// Unsigned LEB128 numbers, for histograms: seven bits per byte, the lowest first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flamed::store {

inline constexpr std::size_t kMostLeb128Bytes = 10;

/// Writes the number at `at`, which has room for kMostLeb128Bytes. Returns the place after it.
inline std::uint8_t* write_leb128(std::uint8_t* at, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::uint8_t>(value | 0x80);
  *at++ = static_cast<std::uint8_t>(value);
  return at;
}

/// Reads the number at `at` and advances `at`. Reading eight bytes at once without a branch on the length takes 1.5
/// times as long: the start of the next number is known later.
inline std::uint64_t read_leb128(const std::uint8_t*& at) {
  std::uint64_t value = *at++;
  if (value < 0x80) return value;
  value &= 0x7f;
  for (unsigned shift = 7;; shift += 7) {
    const std::uint64_t byte = *at++;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

}  // namespace flamed::store
