// SPDX-License-Identifier: Apache-2.0
#include "api/render/source_excerpt.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "api/render/render_source.h"
#include "test/catch.h"

namespace flamed::api {
namespace {

using nlohmann::json;

SourceExcerpt excerpt_of(std::string_view text, const std::vector<std::uint32_t>& wanted,
                         std::size_t room = kMostExcerptBytes) {
  SourceExcerpt excerpt{"app", "/src/app.c"};
  add_lines(text, wanted, room, excerpt);
  return excerpt;
}

std::vector<std::uint32_t> numbers_of(const SourceExcerpt& excerpt) {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, text] : excerpt.lines) numbers.push_back(number);
  return numbers;
}

/// "1\n2\n" and so on.
std::string numbered(int lines) {
  std::string text;
  for (int i = 1; i <= lines; ++i) text += std::to_string(i) + "\n";
  return text;
}

std::string shown(std::string_view line) {
  const SourceExcerpt excerpt = excerpt_of(line, {1});
  REQUIRE(excerpt.lines.size() == 1);
  return excerpt.lines.front().text;
}

TEST_CASE("lines with samples are shown with four before and after them") {
  const SourceExcerpt excerpt = excerpt_of(numbered(100), {2, 20, 23, 60});
  CHECK(numbers_of(excerpt) == std::vector<std::uint32_t>{1,  2,  3,  4,  5,  6,  16, 17, 18, 19, 20, 21, 22, 23,
                                                          24, 25, 26, 27, 56, 57, 58, 59, 60, 61, 62, 63, 64});
  for (const auto& [number, text] : excerpt.lines) CHECK(text == std::to_string(number));
  CHECK(excerpt.reason.empty());
}

TEST_CASE("a file that ends before a line with samples is another version, and says so") {
  CHECK(excerpt_of(numbered(10), {10}).reason.empty());
  const SourceExcerpt excerpt = excerpt_of(numbered(10), {4, 30});
  CHECK(numbers_of(excerpt) == std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(excerpt.reason == "it has 10 lines, so it is another version than what was sampled");
  CHECK(excerpt_of("", {1}).reason == "it has 0 lines, so it is another version than what was sampled");
  CHECK(excerpt_of("no newline at its end", {1}).lines.size() == 1);
  CHECK(excerpt_of(numbered(10), {0xffffffffU}).lines.empty());
}

TEST_CASE("text is cut at the room that there is, and says so") {
  std::vector<std::uint32_t> all(10'000);
  std::iota(all.begin(), all.end(), 1U);
  const SourceExcerpt excerpt = excerpt_of(numbered(10'000), all, 1000);
  CHECK(excerpt.lines.size() > 20);
  CHECK(excerpt.lines.size() < 40);
  CHECK(excerpt.reason == "the rest of it is too much for one answer");
}

TEST_CASE("a line is safe to print and not too long, whatever bytes it has") {
  CHECK(shown("  int a;  // \xC3\xA4") == "  int a;  // \xC3\xA4");
  CHECK(shown("a\r\n") == "a");
  CHECK(shown("\tx\ty") == "        x       y");
  CHECK(shown("\xC3\xA4\ty") == "\xC3\xA4       y");
  CHECK(shown("\x1b[31mred") == "_[31mred");
  CHECK(shown("\xff\xfe") == "__");
  CHECK(shown(std::string_view("a\0b", 3)) == "a_b");
  // Turns the direction of writing.
  CHECK(shown("a\xE2\x80\xAE"
              "b") == "a_b");
  CHECK(shown("\xEF\xBB\xBF// first") == "// first");
  for (const std::string& piece :
       {std::string("x"), std::string("\t"), std::string("\xE2\x82\xAC"), std::string("\xff")}) {
    std::string line;
    for (int i = 0; i < 100'000; ++i) line += piece;
    const std::string text = shown(line);
    CHECK(text.size() <= kMostSourceLineBytes);
    CHECK(text.size() > kMostSourceLineBytes - 8);
    CHECK(text.ends_with("..."));
  }
}

TEST_CASE("an answer has texts beside its lines, with the reason where there is none") {
  store::FunctionPlaces places;
  places.frame = store::NamedFrame{"work", "app", store::FrameKind::kNative, ""};
  places.function = {5, 5};
  places.samples = 5;
  places.lines = {{{3, 3}, "app", "/src/app.c", 7}, {{2, 2}, "app", "/src/other.c", 7}};
  SourceExcerpt there{"app", "/src/app.c", {}, true, {{6, "{"}, {7, "work();"}}};
  const SourceExcerpt missing{"app", "/src/other.c", "its process has ended"};
  const std::vector<SourceExcerpt> excerpts{there, missing};
  const json answer = json::parse(render_source_json(places, 100, &excerpts));
  CHECK(answer["texts"] == json::parse(R"([
    {"module": "app", "file": "/src/app.c", "reason": null, "newer": true,
     "lines": [{"line": 6, "text": "{"}, {"line": 7, "text": "work();"}]},
    {"module": "app", "file": "/src/other.c", "reason": "its process has ended", "newer": false, "lines": []}])"));
  CHECK_FALSE(json::parse(render_source_json(places, 100)).contains("texts"));
  const std::string text = render_source_text(places, excerpts);
  CHECK(text.find("/src/app.c:7  work();\n") != std::string::npos);
  CHECK(text.find("/src/other.c:7\n") != std::string::npos);
  CHECK(text.find("/src/app.c: newer than the program, so lines may have moved\n") != std::string::npos);
  CHECK(text.find("/src/other.c: no text: its process has ended\n") != std::string::npos);
}

}  // namespace
}  // namespace flamed::api
