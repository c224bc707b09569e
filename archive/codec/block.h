// SPDX-License-Identifier: Apache-2.0
//
// Blocks: columns of numbers and texts as compressed bytes. Pure; any thread.
//
// Layout of a block:
//
//   1 byte     version of the layout of everything in the block
//   zstd frame with its content's size and checksum, of:
//     number of columns, then the size of each column in bytes
//     the columns, one after the other
//
// All numbers are unsigned LEB128. A signed number n is written as 2n, or -2n - 1 if it is negative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "base/result.h"

namespace flamed::archive {

/// Of a block's columns. A busy CPU fills 12 KiB a minute; the first block of a dictionary may have a whole call tree.
inline constexpr std::size_t kMostBlockBytes = std::size_t{64} << 20;

inline std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

class Column {
 public:
  void put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::uint8_t>(value | 0x80));
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }
  void put_signed(std::int64_t value) { put(zigzag(value)); }
  void put_text(std::string_view text) { bytes_.insert(bytes_.end(), text.begin(), text.end()); }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// An Error if the columns have more than kMostBlockBytes.
Result<std::vector<std::byte>> pack_block(std::uint8_t version, std::span<const Column> columns);

/// The block with a number behind it that says what it belongs to, so that a block in another one's place is noticed.
/// It is in a frame that zstd skips (RFC 8878, 3.1.2): the bytes are still a block.
[[nodiscard]] std::vector<std::byte> stamped(std::span<const std::byte> block, std::uint32_t stamp);
/// The same apart. A block of flamed's first versions has no stamp.
struct Stamped {
  std::span<const std::byte> block;
  std::optional<std::uint32_t> stamp{};
};
[[nodiscard]] Stamped take_stamp(std::span<const std::byte> bytes);

/// The columns of a block. Does not trust its bytes.
class BlockReader {
 public:
  /// An Error says what is wrong with the block; with code ENOTSUP it has another version. Further columns than
  /// `columns` are ignored.
  static Result<BlockReader> open(std::span<const std::byte> block, std::uint8_t version, std::size_t columns);

  /// All columns stay valid when the reader is moved.
  [[nodiscard]] ByteReader& operator[](std::size_t column) { return columns_[column]; }
  /// No column was read past its end.
  [[nodiscard]] bool ok() const;

 private:
  BlockReader() = default;

  std::vector<std::byte> bytes_;
  std::vector<ByteReader> columns_;
};

}  // namespace flamed::archive
