// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "test/catch.h"

namespace flamed {
namespace {

TEST_CASE("durations are a number and a unit, and several of them add up") {
  const std::vector<std::pair<std::string, std::int64_t>> cases{
      {"0s", 0},
      {"1s", kNsPerSecond},
      {"90m", 90 * kNsPerMinute},
      {"1h30m", 90 * kNsPerMinute},
      {"24h", 24LL * 60 * kNsPerMinute},
      {"1d", 24LL * 60 * kNsPerMinute},
      {"1d1h1m1s", 25LL * 60 * kNsPerMinute + kNsPerMinute + kNsPerSecond},
      {"007s", 7 * kNsPerSecond},
      {"9223372036s", 9'223'372'036 * kNsPerSecond},
  };
  for (const auto& [text, ns] : cases) {
    CAPTURE(text);
    const Result<std::int64_t> parsed = parse_duration_ns(text);
    REQUIRE(parsed.ok());
    CHECK(*parsed == ns);
  }
}

TEST_CASE("text that is no duration is refused with the text and an example") {
  for (const std::string text : {"", "s", "10", "-1s", "+1s", "1.5h", "1s ", " 1s", "1 s", "1ms", "1S", "1hh", "1h30",
                                 "h1", "9223372037s", "9223372036s1s", "106752d", "18446744073709551616s"}) {
    CAPTURE(text);
    const Result<std::int64_t> parsed = parse_duration_ns(text);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().message().find("'" + text + "'") != std::string::npos);
    CHECK(parsed.error().message().find("90m") != std::string::npos);
  }
}

TEST_CASE("sizes are bytes, or powers of 1024 with and without iB") {
  const std::vector<std::pair<std::string, std::uint64_t>> cases{
      {"0", 0},
      {"1", 1},
      {"4096", 4096},
      {"1K", 1024},
      {"1KiB", 1024},
      {"256M", 256ULL << 20},
      {"256MiB", 256ULL << 20},
      {"3G", 3ULL << 30},
      {"3GiB", 3ULL << 30},
      {"18446744073709551615", std::numeric_limits<std::uint64_t>::max()},
      {"17179869183GiB", 17'179'869'183ULL << 30},
  };
  for (const auto& [text, bytes] : cases) {
    CAPTURE(text);
    const Result<std::uint64_t> parsed = parse_size_bytes(text);
    REQUIRE(parsed.ok());
    CHECK(*parsed == bytes);
  }
}

TEST_CASE("text that is no size is refused with the text and an example") {
  for (const std::string text : {"", "K", "-1", "+1", "1.5G", "1KB", "1kib", "1B", "1 M", "1M ", "1MiBs", "1M1K",
                                 "18446744073709551616", "17179869184GiB"}) {
    CAPTURE(text);
    const Result<std::uint64_t> parsed = parse_size_bytes(text);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().message().find("'" + text + "'") != std::string::npos);
    CHECK(parsed.error().message().find("256MiB") != std::string::npos);
  }
}

TEST_CASE("a formatted duration reads back as the same value") {
  CHECK(format_duration(0) == "0s");
  CHECK(format_duration(24LL * 60 * kNsPerMinute) == "1d");
  CHECK(format_duration(90 * kNsPerMinute) == "1h30m");
  for (const std::int64_t seconds :
       {1LL, 59LL, 60LL, 61LL, 3'599LL, 3'600LL, 86'399LL, 86'400LL, 31LL * 86'400, 9'223'372'036LL}) {
    const std::string text = format_duration(seconds * kNsPerSecond);
    CAPTURE(text);
    CHECK(parse_duration_ns(text).value() == seconds * kNsPerSecond);
  }
}

TEST_CASE("a formatted size has the largest exact unit and reads back as the same value") {
  CHECK(format_size(0) == "0");
  CHECK(format_size(1023) == "1023");
  CHECK(format_size(256ULL << 20) == "256MiB");
  CHECK(format_size((1ULL << 30) + 1024) == "1048577KiB");
  for (const std::uint64_t bytes : {0ULL, 1ULL, 1'024ULL, 1'025ULL, 8ULL << 20, 1ULL << 40, ~0ULL, ~0ULL << 10}) {
    const std::string text = format_size(bytes);
    CAPTURE(text);
    CHECK(parse_size_bytes(text).value() == bytes);
  }
}

}  // namespace
}  // namespace flamed
