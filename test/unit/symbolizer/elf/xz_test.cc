// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/xz.h"

#include <lzma.h>

#include <vector>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

/// The output of "xz" with these filter options.
std::string pack(const std::string& text, std::uint32_t dictionary_bytes = 1U << 20) {
  ::lzma_options_lzma options{};
  REQUIRE_FALSE(::lzma_lzma_preset(&options, 1));
  options.dict_size = dictionary_bytes;
  const ::lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  std::string packed(::lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  REQUIRE(::lzma_stream_buffer_encode(const_cast<::lzma_filter*>(filters), LZMA_CHECK_CRC32, nullptr,
                                      reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                                      reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()) == LZMA_OK);
  packed.resize(size);
  return packed;
}

bool mentions(const Result<std::string>& result, const char* what) {
  return !result.ok() && result.error().message().find(what) != std::string::npos;
}

TEST_CASE("compressed data decompresses to the original") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{256} << 10, std::size_t{3'000'000}}) {
    std::string text(bytes, 'x');
    for (std::size_t i = 0; i < text.size(); i += 7) text[i] = static_cast<char>(i);
    const Result<std::string> unpacked = unpack_xz(pack(text), std::size_t{16} << 20);
    REQUIRE(unpacked.ok());
    CHECK(*unpacked == text);
  }
}

TEST_CASE("a small stream that expands far beyond the limit is an error") {
  const std::string bomb = pack(std::string(std::size_t{64} << 20, '\0'));
  REQUIRE(bomb.size() < 64 * 1024);
  CHECK(mentions(unpack_xz(bomb, std::size_t{1} << 20), "more than the limit of 1048576"));
}

TEST_CASE("a stream that asks for a dictionary of 1 GiB is an error") {
  std::string greedy = pack("hello");
  // Stream header: 12 bytes. Block header: its size, flags, two sizes, filter id (0x21), size of the filter's options
  // (1), dictionary, padding, CRC (the .xz format, 3.1).
  const std::size_t filter_at = greedy.find("\x21\x01", 14);
  REQUIRE(filter_at < 30);
  greedy[filter_at + 2] = 36;  // 1 GiB (5.3.1)
  const std::size_t header_bytes = (static_cast<std::size_t>(greedy[12]) + 1) * 4;
  const std::uint32_t checksum =
      ::lzma_crc32(reinterpret_cast<const std::uint8_t*>(greedy.data()) + 12, header_bytes - 4, 0);
  for (std::size_t i = 0; i < 4; ++i) greedy[12 + header_bytes - 4 + i] = static_cast<char>(checksum >> (8 * i));
  CHECK(mentions(unpack_xz(greedy, 1000), "more memory than the limit"));
}

TEST_CASE("truncated or damaged data is an error") {
  const std::string packed = pack(std::string(10'000, 'x'));
  for (std::size_t bytes = 0; bytes < packed.size(); ++bytes) {
    CHECK_FALSE(unpack_xz(packed.substr(0, bytes), 1 << 20).ok());
  }
  CHECK(mentions(unpack_xz("not xz at all, but long enough for its header", 1 << 20), "not in the .xz format"));
}

}  // namespace
}  // namespace flamed::symbolizer
