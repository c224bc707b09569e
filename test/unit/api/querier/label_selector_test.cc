// SPDX-License-Identifier: Apache-2.0
#include "api/querier/label_selector.h"

#include <map>
#include <string>

#include "test/catch.h"

namespace flamed::api {
namespace {

/// Of a series with process="nginx", unit="nginx.service" and nothing else.
bool fits(std::string_view text) {
  const Result<LabelSelector> selector = LabelSelector::parse(text);
  if (!selector.ok()) FAIL(text << ": " << selector.error().message());
  const std::map<std::string, std::string> labels{{"process", "nginx"}, {"unit", "nginx.service"}};
  return selector->matches([&](const std::string& name) {
    const auto found = labels.find(name);
    return found == labels.end() ? std::string() : found->second;
  });
}

std::string value_in(std::string_view quoted) {
  const Result<LabelSelector> selector = LabelSelector::parse("{a=" + std::string(quoted) + "}");
  if (!selector.ok()) return "error: " + selector.error().message();
  return selector->matchers().at(0).value;
}

std::string fault_of(std::string_view text) {
  const Result<LabelSelector> selector = LabelSelector::parse(text);
  return selector.ok() ? std::string() : selector.error().message();
}

TEST_CASE("a selector's conditions must all hold") {
  CHECK(fits("{}"));
  CHECK(fits(R"({process="nginx"})"));
  CHECK_FALSE(fits(R"({process="ngin"})"));
  CHECK(fits(R"({process="nginx",unit="nginx.service"})"));
  CHECK_FALSE(fits(R"({process="nginx",unit="cron.service"})"));
  CHECK_FALSE(fits(R"({process!="nginx"})"));
  CHECK(fits(R"({process!="cron"})"));
}

TEST_CASE("regular expressions match whole values") {
  CHECK(fits(R"({process=~"ng.*"})"));
  CHECK_FALSE(fits(R"({process=~"gin"})"));
  CHECK(fits(R"({process=~"cron|nginx"})"));
  CHECK_FALSE(fits(R"({process=~"^nginx|x$",unit=~"nginx"})"));
  CHECK(fits(R"({process!~"gin"})"));
  CHECK_FALSE(fits(R"({process!~".+"})"));
  CHECK_FALSE(fits(R"({process=~""})"));
}

TEST_CASE("a label that a series does not have is empty") {
  CHECK(fits(R"({container=""})"));
  CHECK_FALSE(fits(R"({container!=""})"));
  CHECK(fits(R"({container=~".*"})"));
  CHECK(fits(R"({container!~".+"})"));
}

TEST_CASE("blanks and a last comma change nothing, and a metric may stand before the brace") {
  CHECK(fits(" {\t process = \"nginx\" ,\n unit =~ \"n.*\" , } "));
  const Result<LabelSelector> selector = LabelSelector::parse(R"(process_cpu:cpu:nanoseconds {pid="1"})");
  REQUIRE(selector.ok());
  CHECK(selector->metric() == "process_cpu:cpu:nanoseconds");
  CHECK(selector->matchers().size() == 1);
  CHECK(LabelSelector::parse("process_cpu").ok());
}

TEST_CASE("texts have the escapes of Go") {
  CHECK(value_in(R"("plain")") == "plain");
  CHECK(value_in(R"('it is "so"')") == "it is \"so\"");
  CHECK(value_in(R"("\a\b\f\n\r\t\v\\\"")") == "\a\b\f\n\r\t\v\\\"");
  CHECK(value_in(R"('\'')") == "'");
  CHECK(value_in(R"("\x41\101")") == "AA");
  CHECK(value_in(R"("\u00fc\U0001F525")") == "\xc3\xbc\xf0\x9f\x94\xa5");
  CHECK(value_in("`a\\n\"b`") == "a\\n\"b");
  CHECK(value_in("\"\xc3\xbc\"") == "\xc3\xbc");
}

TEST_CASE("a malformed selector is refused with the place of the fault") {
  for (const std::string_view text : {"",
                                      " ",
                                      "{",
                                      "}",
                                      "{a}",
                                      "{a=}",
                                      "{a=b}",
                                      R"({a="b")",
                                      R"({a="b"}})",
                                      R"({a="b"} x)",
                                      R"({a="b" c="d"})",
                                      R"({,})",
                                      R"({a=="b"})",
                                      R"({a=~"("})",
                                      R"({="b"})",
                                      R"({1a="b"})",
                                      R"({"a"="b"})",
                                      R"({a="b)",
                                      "{a=\"b\nc\"}",
                                      R"({a="\q"})",
                                      R"({a="\'"})",
                                      R"({a="\x4"})",
                                      R"({a="\400"})",
                                      R"({a="\18"})",
                                      R"({a="\ud800"})",
                                      R"({a="\U00110000"})",
                                      R"({a="\)",
                                      R"({a="\u12)",
                                      "{a='b\"}",
                                      "\x01\x02"}) {
    CAPTURE(text);
    CHECK(fault_of(text).find("malformed at byte") != std::string::npos);
  }
}

TEST_CASE("a selector that is too large is refused") {
  CHECK(fault_of(std::string(1U << 20, '{')).find("longer than 16384 bytes") != std::string::npos);
  CHECK(fault_of(R"({a=~")" + std::string(5000, 'x') + R"("})").find("longer than 4096 bytes") != std::string::npos);
  CHECK(fault_of(R"({a=~"((a{100}){100}){100}"})").find("can't be used") != std::string::npos);
  std::string many = "{";
  for (int i = 0; i < 21; ++i) many += R"(a="b",)";
  CHECK(fault_of(many + "}").find("more than 20 conditions") != std::string::npos);
  CHECK(LabelSelector::parse(R"({a=~")" + std::string(4000, 'x') + R"("})").ok());
}

}  // namespace
}  // namespace flamed::api
