// SPDX-License-Identifier: Apache-2.0
#include "api/text/gzip.h"

#include "test/catch.h"

namespace flamed::api {
namespace {

std::span<const unsigned char> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

TEST_CASE("compressed data decompresses to the original") {
  for (std::size_t size : {0U, 1U, 500U, 5000U, 65536U, 1'000'000U}) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i * i % 23);
    const auto compressed = gzip(text);
    REQUIRE(compressed.ok());
    const auto plain = gunzip(bytes_of(*compressed));
    REQUIRE(plain.ok());
    CHECK(*plain == text);
  }
}

TEST_CASE("data that is not gzip is refused") {
  CHECK_FALSE(gunzip(bytes_of("hello")).ok());
  CHECK_FALSE(gunzip({}).ok());
  const auto compressed = gzip("hello");
  REQUIRE(compressed.ok());
  CHECK_FALSE(gunzip(bytes_of(compressed->substr(0, compressed->size() - 4))).ok());
}

TEST_CASE("data that unpacks to more than is allowed is refused") {
  const auto compressed = gzip(std::string(5'000'000, ' '));
  REQUIRE(compressed.ok());
  CHECK(gunzip(bytes_of(*compressed), 5'000'000).ok());
  const auto refused = gunzip(bytes_of(*compressed), 4'999'999);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() == "it unpacks to more than 4999999 bytes");
}

TEST_CASE("a client that accepts gzip gets gzip") {
  struct Case {
    std::string_view header;
    bool accepted;
  };
  const Case cases[] = {
      {"", false},
      {"identity", false},
      {"br", false},
      {"gzip", true},
      {"gzip, deflate, br", true},
      {"deflate , gzip;q=0.5", true},
      {"x-gzip", true},
      {"gzip;q=0", false},
      {"gzip; q=0.000", false},
      {"*", true},
      {"*;q=0", false},
      {"*, gzip;q=0", false},
      {"gzip;q=1, *;q=0", true},
      {"gzipped", false},
      {"gzip;q=0.001", true},
  };
  for (const Case& c : cases) {
    INFO(c.header);
    CHECK(accepts_gzip(c.header) == c.accepted);
  }
}

TEST_CASE("a client that accepts Brotli gets Brotli") {
  CHECK(accepts_coding("gzip, deflate, br", "br"));
  CHECK(accepts_coding("br;q=0.8", "br"));
  CHECK(accepts_coding("*", "br"));
  CHECK_FALSE(accepts_coding("gzip, br;q=0", "br"));
  CHECK_FALSE(accepts_coding("gzip, x-gzip", "br"));
  CHECK_FALSE(accepts_coding("", "br"));
}

}  // namespace
}  // namespace flamed::api
