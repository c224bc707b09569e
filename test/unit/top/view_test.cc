// SPDX-License-Identifier: Apache-2.0
#include "top/view.h"

#include <clocale>

#include "test/catch.h"

namespace flamed::top {
namespace {

constexpr const char* kFunctions = R"({"window": {"used": {"from": "2026-01-31T14:05:00.000Z",
  "to": "2026-01-31T14:06:00.000Z", "from_ms": 1769868300000, "to_ms": 1769868360000}},
  "cpu_seconds": 3.03, "samples": 300, "warnings": ["odd"], "functions": [
  {"name": "read\u001b[31m", "module": "libc.so.6", "self_percent": 66.7, "total_percent": 70},
  {"name": "main", "self_percent": 1, "total_percent": 99.5}]})";

View example() {
  View view;
  REQUIRE(read_functions(kFunctions, view).ok());
  return view;
}

TEST_CASE("no value of a question becomes another parameter") {
  Question question;
  question.focus = "a&seconds=3600 \xff";
  question.pids = {"1@2", "3"};
  CHECK(functions_target(question) ==
        "/profile?format=top&from=now-60s&pid=1@2&pid=3&focus=a%26seconds%3D3600%20%FF&group=none&max_nodes=1000");
  question = {};
  question.from = "14:05";
  question.to = "14:10";
  question.by_thread = true;
  CHECK(summary_target(question) == "/profile?format=summary&from=14:05&to=14:10&group=thread");
  question.waits = true;
  CHECK(functions_target(question) == "/profile?format=top&from=14:05&to=14:10&group=none&max_nodes=1000&measure=wait");
}

TEST_CASE("functions are read with their shares, and without control characters") {
  const View view = example();
  CHECK(view.samples == 300);
  CHECK(view.window == "2026-01-31T14:05:00Z to 14:06:00Z");
  REQUIRE(view.functions.size() == 2);
  CHECK(view.functions[0].name == "read_[31m (libc.so.6)");
  CHECK(row_of(view.functions[0]) == "  66.7%   70.0%  read_[31m (libc.so.6)");
  CHECK(view.summary == std::vector<std::string>{"Note: odd"});
  CHECK(title_of({}, view) == "live, the last 60s: 3.03 s of CPU time, 300 samples");
}

TEST_CASE("what is no such answer is an error") {
  for (const char* text : {"", "{}", "[]", R"({"window": 1})", R"({"window": {"used": {"from": 1}}})"}) {
    View view;
    CHECK(!read_functions(text, view).ok());
  }
  CHECK(read_problem(R"({"detail": "no\u001bway"})") == "no_way");
  for (const char* text : {"", "[]", "{}", R"({"detail": 7})"}) CHECK(read_problem(text) == "flamed gives no reason");
}

TEST_CASE("functions are sorted by self or by total") {
  View view = example();
  sort(view.functions, Order::kTotal);
  CHECK(view.functions[0].name == "main");
  sort(view.functions, Order::kSelf);
  CHECK(view.functions[0].name == "read_[31m (libc.so.6)");
}

TEST_CASE("text is broken at blanks, and cut where there is no more room") {
  const std::vector<std::string> text{"one two three", "four"};
  CHECK(wrapped(text, 80, 9) == text);
  CHECK(wrapped(text, 8, 9) == std::vector<std::string>{"one two", "three", "four"});
  CHECK(wrapped(text, 7, 9) == std::vector<std::string>{"one two", "three", "four"});
  CHECK(wrapped(text, 4, 9) == std::vector<std::string>{"one", "two", "thre", "e", "four"});
  CHECK(wrapped(text, 8, 2) == std::vector<std::string>{"one two", "three..."});
  CHECK(wrapped(text, 3, 9).empty());
  CHECK(wrapped({""}, 80, 9).empty());
}

TEST_CASE("a line takes the columns that there are") {
  REQUIRE(std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr);
  CHECK(fitting("abc", 2) == "ab");
  CHECK(fitting("\xc3\xbc\xc3\xbc", 1) == "\xc3\xbc");
  // Two columns each.
  CHECK(fitting("\xe6\xbc\xa2\xe5\xad\x97", 3) == "\xe6\xbc\xa2");
  CHECK(fitting("\xff"
                "a",
                2) == "?a");
  CHECK(fitting("\x1b[1m", 4) == "?[1m");
  std::setlocale(LC_CTYPE, "C");
  CHECK(fitting("\xc3\xbc", 5) == "??");
}

TEST_CASE("plain text has no more rows than asked for") {
  View view = example();
  view.summary = {"All is well."};
  CHECK(plain_text({}, view, 1) ==
        "live, the last 60s: 3.03 s of CPU time, 300 samples\n"
        "2026-01-31T14:05:00Z to 14:06:00Z\n"
        "All is well.\n"
        "\n"
        "   self   total  function (module)\n"
        "  66.7%   70.0%  read_[31m (libc.so.6)\n");
}

}  // namespace
}  // namespace flamed::top
