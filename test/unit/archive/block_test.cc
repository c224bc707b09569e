// SPDX-License-Identifier: Apache-2.0
#include "archive/codec/block.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "test/catch.h"

namespace flamed::archive {
namespace {

std::vector<std::byte> block_of(std::uint8_t version, std::span<const Column> columns) {
  Result<std::vector<std::byte>> block = pack_block(version, columns);
  REQUIRE(block.ok());
  return std::move(*block);
}

/// Of 1,000 numbers and a text.
std::vector<std::byte> example() {
  std::vector<Column> columns(2);
  for (std::uint64_t i = 0; i < 1000; ++i) columns[0].put(i * i * i);
  columns[1].put_text("text");
  return block_of(3, columns);
}

}  // namespace

TEST_CASE("a block has the numbers and texts that were put into its columns") {
  std::vector<Column> columns(3);
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{63}, kLeast, kMost}) {
    columns[0].put_signed(value);
  }
  columns[2].put_text("some text");
  Result<BlockReader> reader = BlockReader::open(block_of(7, columns), 7, 3);
  REQUIRE(reader.ok());
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{63}, kLeast, kMost}) {
    CHECK(unzigzag((*reader)[0].uleb()) == value);
  }
  CHECK((*reader)[1].left() == 0);
  CHECK((*reader)[2].left() == 9);
  CHECK(reader->ok());
  static_cast<void>((*reader)[1].uleb());
  CHECK_FALSE(reader->ok());
}

TEST_CASE("a block of another version is told from a damaged one") {
  const Result<BlockReader> reader = BlockReader::open(example(), 4, 2);
  REQUIRE_FALSE(reader.ok());
  CHECK(reader.error().code() == ENOTSUP);
  CHECK(reader.error().message() == "a block of version 3; this flamed reads version 4");
}

TEST_CASE("a block may have more columns than are read, and not fewer") {
  CHECK(BlockReader::open(example(), 3, 1).ok());
  CHECK_FALSE(BlockReader::open(example(), 3, 3).ok());
}

TEST_CASE("a block in which any bit is flipped is refused") {
  const std::vector<std::byte> block = example();
  for (std::size_t i = 0; i < block.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> damaged = block;
      damaged[i] ^= std::byte{1} << bit;
      const Result<BlockReader> reader = BlockReader::open(damaged, 3, 2);
      // Some bits of a zstd frame's head mean nothing for its content.
      if (reader.ok()) {
        Result<BlockReader> again = BlockReader::open(damaged, 3, 2);
        for (std::uint64_t n = 0; n < 1000; ++n) REQUIRE((*again)[0].uleb() == n * n * n);
      }
    }
  }
}

TEST_CASE("a block that was cut anywhere is refused") {
  const std::vector<std::byte> block = example();
  for (std::size_t size = 0; size < block.size(); ++size) {
    CHECK_FALSE(BlockReader::open(std::span(block).first(size), 3, 2).ok());
  }
}

TEST_CASE("a stamp is found behind a block, which is read with it and without") {
  const std::vector<std::byte> block = example();
  CHECK_FALSE(take_stamp(block).stamp);
  const std::vector<std::byte> with = stamped(block, 0x12345678);
  const Stamped found = take_stamp(with);
  CHECK(found.stamp == 0x12345678U);
  CHECK(std::equal(found.block.begin(), found.block.end(), block.begin(), block.end()));
  CHECK(BlockReader::open(with, 3, 2).ok());
  CHECK(take_stamp(std::span(with).last(12)).block.empty());
  CHECK_FALSE(take_stamp(std::span(with).last(11)).stamp);
}

TEST_CASE("too many bytes are no block") {
  std::vector<Column> columns(1);
  const std::string text(1U << 20, 'x');
  for (std::size_t i = 0; i < kMostBlockBytes / text.size(); ++i) columns[0].put_text(text);
  CHECK(pack_block(1, columns).ok());
  columns[0].put_text("x");
  CHECK_FALSE(pack_block(1, columns).ok());
}

}  // namespace flamed::archive
