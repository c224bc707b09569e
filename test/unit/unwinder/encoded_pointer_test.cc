// SPDX-License-Identifier: Apache-2.0
#include "unwinder/encoded_pointer.h"

#include <cstdint>
#include <optional>

#include "test/catch.h"
#include "test/unit/unwinder/frame_assembler.h"

namespace flamed::unwinder {
namespace {

/// `bytes` are at 0x1000.
std::optional<std::uint64_t> pointer(const Bytes& bytes, unsigned encoding, std::uint8_t address_size = 8) {
  const PointerBases bases{
      .section = bytes.span().data(), .address = 0x1000, .text = 0x2000, .data = 0x3000, .address_size = address_size};
  ByteReader reader(bytes);
  const auto address = read_encoded_pointer(reader, static_cast<std::uint8_t>(encoding), bases);
  if (!reader.ok() || reader.left() != 0) return std::nullopt;
  return address;
}

TEST_CASE("Encoded pointers of every format and base have the right address") {
  CHECK(pointer(Bytes().u64(0x1122334455667788), 0x00) == 0x1122334455667788);
  CHECK(pointer(Bytes().u32(0x11223344), 0x00, 4) == 0x11223344);
  CHECK(pointer(Bytes().uleb(300), 0x01) == 300);
  CHECK(pointer(Bytes().u16(0xfffe), 0x02) == 0xfffe);
  CHECK(pointer(Bytes().u32(0xfffffffe), 0x03) == 0xfffffffe);
  CHECK(pointer(Bytes().u64(5), 0x04) == 5);
  CHECK(pointer(Bytes().sleb(-16), 0x19) == 0x1000 - 16);
  CHECK(pointer(Bytes().u16(0xfffe), 0x1a) == 0x1000 - 2);
  CHECK(pointer(Bytes().u32(0xfffffffe), 0x1b) == 0x1000 - 2);
  CHECK(pointer(Bytes().u64(static_cast<std::uint64_t>(-2)), 0x1c) == 0x1000 - 2);
  CHECK(pointer(Bytes().u32(1), 0x2b) == 0x2001);
  CHECK(pointer(Bytes().u32(1), 0x3b) == 0x3001);
}

TEST_CASE("An aligned pointer starts at the next multiple of its size") {
  Bytes bytes{0xee};
  bytes.append(Bytes{0, 0, 0, 0, 0, 0, 0}).u64(0x1234);
  const PointerBases bases{.section = bytes.span().data(), .address = 0x1000, .text = {}, .data = {}};
  ByteReader reader(bytes);
  reader.skip(1);
  CHECK(read_encoded_pointer(reader, 0x50, bases) == 0x1234);
  CHECK(reader.left() == 0);
}

TEST_CASE("Indirect, function-relative, unknown and baseless pointers are refused") {
  const Bytes bytes = Bytes().u64(0);
  CHECK_FALSE(pointer(bytes, 0x9b).has_value());
  CHECK_FALSE(pointer(bytes, 0x4b).has_value());
  CHECK_FALSE(pointer(bytes, 0x0f).has_value());
  CHECK_FALSE(pointer(bytes, 0x70).has_value());
  const PointerBases no_bases{.section = bytes.span().data(), .address = 0x1000, .text = {}, .data = {}};
  ByteReader reader(bytes);
  CHECK_FALSE(read_encoded_pointer(reader, 0x2b, no_bases).has_value());
  CHECK_FALSE(read_encoded_pointer(reader, 0x3b, no_bases).has_value());
}

}  // namespace
}  // namespace flamed::unwinder
