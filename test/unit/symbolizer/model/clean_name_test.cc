// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/clean_name.h"

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

const std::string kReplaced = "\xEF\xBF\xBD";

TEST_CASE("a plain name is not changed") {
  CHECK(clean_name("std::vector<int>::size; x") == "std::vector<int>::size; x");
}

TEST_CASE("valid UTF-8 is not changed") { CHECK(clean_name("gödel::日本::🔥") == "gödel::日本::🔥"); }

TEST_CASE("control characters are replaced, each by one mark") {
  CHECK(clean_name(std::string("a\0b", 3)) == "a" + kReplaced + "b");
  CHECK(clean_name("a\nb\tc\x7f") == "a" + kReplaced + "b" + kReplaced + "c" + kReplaced);
  CHECK(clean_name("\x1b[31mred") == kReplaced + "[31mred");
  CHECK(clean_name("\xC2\x9B") == kReplaced);  // C1: CSI
}

TEST_CASE("characters that reorder or break a line are replaced") {
  CHECK(clean_name("a\u202Eb") == "a" + kReplaced + "b");
  CHECK(clean_name("a\u2066b\u2028") == "a" + kReplaced + "b" + kReplaced);
}

TEST_CASE("bytes that are not UTF-8 are replaced") {
  CHECK(clean_name("\xFF\xFE") == kReplaced + kReplaced);
  CHECK(clean_name("a\xC3") == "a" + kReplaced);                                           // cut off
  CHECK(clean_name("\xC0\xAF") == kReplaced + kReplaced);                                  // overlong '/'
  CHECK(clean_name("\xE0\x80\xAF") == kReplaced + kReplaced + kReplaced);                  // overlong
  CHECK(clean_name("\xED\xA0\x80") == kReplaced + kReplaced + kReplaced);                  // surrogate
  CHECK(clean_name("\xF4\x90\x80\x80") == kReplaced + kReplaced + kReplaced + kReplaced);  // past U+10FFFF
}

TEST_CASE("a name of exactly the limit is whole, a longer one is cut with a mark") {
  CHECK(clean_name("12345678", 8) == "12345678");
  CHECK(clean_name("123456789", 8) == "12345...");
}

TEST_CASE("a cut never splits a character and never exceeds the limit") {
  std::string name;
  for (int i = 0; i < 100; ++i) name += "ö";
  for (std::size_t limit = 3; limit < 40; ++limit) {
    const std::string clean = clean_name(name, limit);
    CHECK(clean.size() <= limit);
    CHECK(clean.substr(clean.size() - 3) == "...");
    CHECK((clean.size() - 3) % 2 == 0);
  }
}

TEST_CASE("a replacement can't grow a name past the limit") {
  CHECK(clean_name(std::string(kMaxNameBytes, '\x01')).size() <= kMaxNameBytes);
}

}  // namespace
}  // namespace flamed::symbolizer
