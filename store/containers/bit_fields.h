// SPDX-License-Identifier: Apache-2.0
//
// Unsigned numbers of a fixed width, packed without gaps, for logs of samples: the position of each is known, so reads
// don't depend on each other.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace flamed::store {

/// Reads eight bytes at any field's first byte.
inline constexpr unsigned kWidestBitField = 57;
/// This many bytes must be readable from the last field's first byte on.
inline constexpr std::size_t kBitFieldsTail = 8;

/// Appends whole bytes. `of(i)` is the i-th of `count` numbers, each below 2^width; `width` is at most kWidestBitField.
template <typename F>
void append_bit_fields(std::vector<std::uint8_t>& bytes, std::size_t count, unsigned width, F&& of) {
  std::uint64_t pending = 0;
  unsigned bits = 0;  // of `pending`; below 8 between fields
  for (std::size_t i = 0; i < count; ++i) {
    pending |= static_cast<std::uint64_t>(of(i)) << bits;
    for (bits += width; bits >= 8; bits -= 8, pending >>= 8) bytes.push_back(static_cast<std::uint8_t>(pending));
  }
  if (bits != 0) bytes.push_back(static_cast<std::uint8_t>(pending));
}

[[nodiscard]] inline std::size_t bytes_of_bit_fields(std::size_t count, unsigned width) {
  return (count * width + 7) / 8;
}

/// Reads the fields that append_bit_fields() wrote at `bytes`.
class BitFields {
 public:
  BitFields(const std::uint8_t* bytes, unsigned width)
      : bytes_(bytes), width_(width), mask_((std::uint64_t{1} << width) - 1) {}

  [[nodiscard]] std::uint64_t operator[](std::size_t i) const {
    static_assert(std::endian::native == std::endian::little);
    const std::size_t bit = i * width_;
    std::uint64_t word = 0;
    std::memcpy(&word, bytes_ + bit / 8, sizeof(word));
    return (word >> (bit % 8)) & mask_;
  }

 private:
  const std::uint8_t* bytes_;
  unsigned width_;
  std::uint64_t mask_;
};

}  // namespace flamed::store
