// SPDX-License-Identifier: Apache-2.0
#include "archive/codec/block.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string>

namespace flamed::archive {
namespace {

// Higher levels take longer and hardly less space: what is left after the columns' differences is nearly random.
constexpr int kLevel = 3;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

/// A skippable frame's magic number and the size of its content, both in little endian.
constexpr std::array<std::byte, 8> kStampHead{std::byte{0x5e}, std::byte{0x2a}, std::byte{0x4d}, std::byte{0x18},
                                              std::byte{4},    std::byte{0},    std::byte{0},    std::byte{0}};
constexpr std::size_t kStampBytes = kStampHead.size() + 4;

Error damaged(std::string_view what) { return Error("damaged block: " + std::string(what)); }

}  // namespace

Result<std::vector<std::byte>> pack_block(std::uint8_t version, std::span<const Column> columns) {
  Column head;
  head.put(columns.size());
  std::size_t size = 0;
  for (const Column& column : columns) {
    head.put(column.bytes().size());
    size += column.bytes().size();
  }
  if (size > kMostBlockBytes) return Error("a block would have " + std::to_string(size) + " bytes, which is too many");
  std::vector<std::uint8_t> plain;
  plain.reserve(head.bytes().size() + size);
  plain = head.bytes();
  for (const Column& column : columns) plain.insert(plain.end(), column.bytes().begin(), column.bytes().end());

  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) return Error("no memory to compress a block");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::vector<std::byte> block(1 + ZSTD_compressBound(plain.size()));
  block[0] = std::byte{version};
  const std::size_t packed =
      ZSTD_compress2(context.get(), block.data() + 1, block.size() - 1, plain.data(), plain.size());
  if (ZSTD_isError(packed) != 0) return Error(std::string("compressing a block: ") + ZSTD_getErrorName(packed));
  block.resize(1 + packed);
  block.shrink_to_fit();
  return block;
}

std::vector<std::byte> stamped(std::span<const std::byte> block, std::uint32_t stamp) {
  std::vector<std::byte> bytes;
  bytes.reserve(block.size() + kStampBytes);
  bytes.assign(block.begin(), block.end());
  bytes.insert(bytes.end(), kStampHead.begin(), kStampHead.end());
  for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(stamp >> shift));
  return bytes;
}

Stamped take_stamp(std::span<const std::byte> bytes) {
  if (bytes.size() < kStampBytes) return {bytes};
  const std::span<const std::byte> end = bytes.last(kStampBytes);
  if (!std::equal(kStampHead.begin(), kStampHead.end(), end.begin())) return {bytes};
  std::uint32_t stamp = 0;
  for (std::size_t i = 0; i < 4; ++i) stamp |= static_cast<std::uint32_t>(end[kStampHead.size() + i]) << (8 * i);
  return {bytes.first(bytes.size() - kStampBytes), stamp};
}

Result<BlockReader> BlockReader::open(std::span<const std::byte> block, std::uint8_t version, std::size_t columns) {
  if (block.empty()) return damaged("it is empty");
  const auto found = static_cast<std::uint8_t>(block[0]);
  if (found != version) {
    return Error(
        "a block of version " + std::to_string(found) + "; this flamed reads version " + std::to_string(version),
        ENOTSUP);
  }
  block = block.subspan(1);
  const unsigned long long size = ZSTD_getFrameContentSize(block.data(), block.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR) return damaged("it does not tell its size");
  if (size > kMostBlockBytes + kMostBlockBytes / 16) return damaged("it tells a size that no block has");
  BlockReader reader;
  reader.bytes_.resize(size);
  const std::size_t unpacked = ZSTD_decompress(reader.bytes_.data(), size, block.data(), block.size());
  if (ZSTD_isError(unpacked) != 0) return damaged(ZSTD_getErrorName(unpacked));
  if (unpacked != size) return damaged("it is shorter than it tells");

  ByteReader head(reader.bytes_);
  const std::uint64_t count = head.uleb();
  if (!head.ok() || count < columns || count > head.left()) return damaged("its columns don't fit");
  std::vector<std::uint64_t> sizes(count);
  for (std::uint64_t& bytes : sizes) bytes = head.uleb();
  for (const std::uint64_t bytes : sizes) reader.columns_.emplace_back(head.take(bytes));
  if (!head.ok()) return damaged("its columns don't fit");
  return reader;
}

bool BlockReader::ok() const {
  return std::all_of(columns_.begin(), columns_.end(), [](const ByteReader& column) { return column.ok(); });
}

}  // namespace flamed::archive
