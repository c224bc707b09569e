// SPDX-License-Identifier: Apache-2.0
//
// Numbers as HotSpot compresses them ("UNSIGNED5"): one to five bytes, the lowest digits first. A byte below 192 is the
// last one; each adds its value, less `exclude`, times a power of 64.
#pragma once

#include <cstdint>

#include "base/byte_reader.h"

namespace flamed::runtimes {

/// `exclude` is 1 if no byte of a number may be 0, else 0.
inline std::uint32_t read_unsigned5(ByteReader& bytes, std::uint32_t exclude) {
  constexpr std::uint32_t kLowestWithMore = 192;
  constexpr unsigned kMostBytes = 5;
  std::uint32_t value = 0;
  for (unsigned i = 0; i < kMostBytes; ++i) {
    const std::uint32_t byte = bytes.u8();
    value += (byte - exclude) << (6 * i);
    if (byte < kLowestWithMore) break;
  }
  return value;
}

/// Zigzag: the sign is the lowest bit.
inline std::int32_t read_signed5(ByteReader& bytes, std::uint32_t exclude) {
  const std::uint32_t value = read_unsigned5(bytes, exclude);
  return static_cast<std::int32_t>(value >> 1 ^ (0 - (value & 1)));
}

}  // namespace flamed::runtimes
