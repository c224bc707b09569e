// SPDX-License-Identifier: Apache-2.0
#include "base/byte_reader.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "test/catch.h"
#include "test/unit/unwinder/frame_assembler.h"

namespace flamed {
namespace {

using unwinder::Bytes;

TEST_CASE("A read beyond the end returns zero, and the reader stays failed") {
  const Bytes bytes{1, 2, 3};
  ByteReader reader(bytes);
  CHECK(reader.u16() == 0x0201);
  CHECK(reader.ok());
  CHECK(reader.u16() == 0);
  CHECK_FALSE(reader.ok());
  CHECK(reader.u8() == 0);
  CHECK(reader.left() == 0);
}

TEST_CASE("LEB128 numbers read back as written, up to the widest") {
  const auto unsigned_number = GENERATE(std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, std::uint64_t{16'400},
                                        std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max());
  const Bytes written = Bytes().uleb(unsigned_number);
  ByteReader reader(written);
  CHECK(reader.uleb() == unsigned_number);
  CHECK(reader.ok());
  CHECK(reader.left() == 0);
}

TEST_CASE("Signed LEB128 numbers read back as written, up to the widest") {
  const auto number = GENERATE(std::int64_t{0}, std::int64_t{-1}, std::int64_t{63}, std::int64_t{64}, std::int64_t{-64},
                               std::int64_t{-65}, std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max(),
                               std::numeric_limits<std::int64_t>::min());
  const Bytes written = Bytes().sleb(number);
  ByteReader reader(written);
  CHECK(reader.sleb() == number);
  CHECK(reader.ok());
  CHECK(reader.left() == 0);
}

TEST_CASE("LEB128 numbers that need more than 64 bits or 10 bytes fail") {
  const Bytes too_wide{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02};
  const Bytes too_long{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
  const Bytes cut{0x80};
  for (const Bytes* bytes : {&too_wide, &too_long, &cut}) {
    ByteReader unsigned_reader(*bytes);
    CHECK(unsigned_reader.uleb() == 0);
    CHECK_FALSE(unsigned_reader.ok());
    ByteReader signed_reader(*bytes);
    CHECK(signed_reader.sleb() == 0);
    CHECK_FALSE(signed_reader.ok());
  }
}

TEST_CASE("Only numbers of 1, 2, 3, 4 and 8 bytes are read") {
  const Bytes bytes{1, 2, 3, 4, 5, 6, 7, 8};
  for (const auto& [size, number] : {std::pair<std::size_t, std::uint64_t>{1, 0x01},
                                     {2, 0x0201},
                                     {3, 0x030201},
                                     {4, 0x04030201},
                                     {8, 0x0807060504030201}}) {
    ByteReader reader(bytes);
    CHECK(reader.number(size) == number);
    CHECK(reader.position() == size);
  }
  ByteReader reader(bytes);
  CHECK(reader.number(5) == 0);
  CHECK_FALSE(reader.ok());
}

TEST_CASE("A text ends at its NUL, and one without a NUL fails") {
  const Bytes bytes{'a', 'b', 0, 'c'};
  ByteReader reader(bytes);
  CHECK(reader.text() == "ab");
  CHECK(reader.position() == 3);
  CHECK(reader.text().empty());
  CHECK_FALSE(reader.ok());
}

TEST_CASE("A seek and a skip of a LEB128 number fail past the end") {
  const Bytes bytes{0x80, 0x80, 0x01, 0x07};
  ByteReader reader(bytes, 1);
  reader.skip_leb();
  CHECK(reader.u8() == 7);
  CHECK(reader.ok());
  reader.seek(0);
  CHECK(reader.take(2).size() == 2);
  reader.seek(5);
  CHECK_FALSE(reader.ok());
  ByteReader cut(bytes.span().first(2));
  cut.skip_leb();
  CHECK_FALSE(cut.ok());
}

}  // namespace
}  // namespace flamed
