// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/function_ranges.h"

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint64_t kFourGib = std::uint64_t{1} << 32;

TEST_CASE("an address is in the function that covers it, in whatever order they come") {
  const FunctionRanges functions({{0x300, 0x310}, {0x100, 0x200}, {0x200, 0x280}});
  REQUIRE(functions.size() == 3);
  CHECK(functions.find(0x100) == CodeRange{0x100, 0x200});
  CHECK(functions.find(0x1ff) == CodeRange{0x100, 0x200});
  CHECK(functions.find(0x200) == CodeRange{0x200, 0x280});
  CHECK(functions.find(0x30f) == CodeRange{0x300, 0x310});
  for (const std::uint64_t outside : {std::uint64_t{0}, std::uint64_t{0xff}, std::uint64_t{0x280}, std::uint64_t{0x310},
                                      0x100 + kFourGib, FunctionRanges::kNoEnd}) {
    CHECK_FALSE(functions.find(outside).has_value());
  }
  CHECK_FALSE(FunctionRanges().find(0).has_value());
}

TEST_CASE("code outside of all functions reaches to the next one") {
  const FunctionRanges functions({{0x100, 0x200}, {0x300, 0x310}});
  CHECK(functions.end_of(0x80) == 0x100);
  CHECK(functions.end_of(0x180) == 0x200);
  CHECK(functions.end_of(0x200) == 0x300);
  CHECK(functions.end_of(0x310) == FunctionRanges::kNoEnd);
  CHECK(FunctionRanges().end_of(0x310) == FunctionRanges::kNoEnd);
}

TEST_CASE("of functions with the same start the longest is kept, and none without code") {
  const FunctionRanges functions({{0x100, 0x110}, {0x100, 0x180}, {0x200, 0x200}, {0x300, 0x2ff}});
  REQUIRE(functions.size() == 1);
  CHECK(functions[0] == CodeRange{0x100, 0x180});
}

TEST_CASE("functions that 32 bits can't hold are left out") {
  const FunctionRanges functions({{0x100, 0x110},
                                  {0xff + kFourGib, 0x110 + kFourGib},
                                  {0x100 + kFourGib, 0x110 + kFourGib},
                                  {0x50, 0x50 + kFourGib}});
  REQUIRE(functions.size() == 2);
  CHECK(functions.find(0x100 + kFourGib) == CodeRange{0xff + kFourGib, 0x110 + kFourGib});
  CHECK(functions.bytes() < 64);
}

}  // namespace
}  // namespace flamed::symbolizer
