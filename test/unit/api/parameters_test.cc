// SPDX-License-Identifier: Apache-2.0
#include "api/parameters.h"

#include <array>

#include "test/catch.h"

namespace flamed::api {
namespace {

constexpr std::array<std::string_view, 2> kFormats{"flamegraph", "folded"};
constexpr std::array<ParameterSpec, 3> kTable{{
    {"pid", ParameterType::kProcess, "", {}},
    {"from", ParameterType::kTime, "", {}},
    {"format", ParameterType::kChoice, "", kFormats},
}};

std::variant<Parameters, Problem> parse(const std::vector<QueryItem>& query) {
  const TimeContext context{WallTime{1'000 * kNsPerSecond}, [](WallTime) { return 0; }};
  return Parameters::parse(kTable, query, context);
}

TEST_CASE("a process is a pid, with or without its start") {
  const auto pid = parse_process("123");
  REQUIRE(pid.ok());
  CHECK(pid->pid == 123);
  CHECK_FALSE(pid->start_ticks.has_value());
  const auto exact = parse_process("2147483647@18446744073709551615");
  REQUIRE(exact.ok());
  CHECK(exact->pid == 2147483647);
  CHECK(exact->start_ticks == 18446744073709551615ULL);
}

TEST_CASE("what is no process is refused with the forms that are") {
  for (std::string_view text : {"", "0", "-1", "+1", " 1", "1 ", "0x1", "1.5", "2147483648", "99999999999999999999",
                                "abc", "1@", "@1", "1@-1", "1@x", "1@2@3", "1@18446744073709551616", "1,2"}) {
    INFO(text);
    const auto process = parse_process(text);
    REQUIRE_FALSE(process.ok());
    CHECK(process.error().message().find("1234@567890") != std::string::npos);
  }
}

TEST_CASE("parameters come out typed, and those not given as their defaults") {
  const auto parsed = parse({{"pid", "7@8"}, {"from", "now-10s"}});
  const auto* parameters = std::get_if<Parameters>(&parsed);
  REQUIRE(parameters != nullptr);
  CHECK(parameters->process("pid")->pid == 7);
  CHECK(parameters->time("from") == WallTime{990 * kNsPerSecond});
  CHECK(parameters->choice("format") == "flamegraph");

  const auto empty = parse({});
  REQUIRE(std::holds_alternative<Parameters>(empty));
  CHECK_FALSE(std::get<Parameters>(empty).process("pid").has_value());
  CHECK_FALSE(std::get<Parameters>(empty).time("from").has_value());
}

TEST_CASE("a bad parameter is refused by name") {
  struct Case {
    std::vector<QueryItem> query;
    std::string parameter;
    std::string said;
  };
  const Case cases[] = {
      {{{"pidd", "1"}}, "pidd", "Allowed are: pid, from, format."},
      {{{"PID", "1"}}, "PID", "Allowed are: pid, from, format."},
      {{{"", "1"}}, "", "Allowed are"},
      {{{"pid", "1"}, {"pid", "1"}}, "pid", "more than once"},
      {{{"pid", "1"}, {"pid", "2"}}, "pid", "more than once"},
      {{{"pid", "x"}}, "pid", "\"x\" is not a process"},
      {{{"from", "soon"}}, "from", "\"soon\" is not a time"},
      {{{"format", "svg"}}, "format", "Allowed are: flamegraph, folded."},
      {{{"format", ""}}, "format", "Allowed are: flamegraph, folded."},
  };
  for (const Case& c : cases) {
    INFO(c.said);
    const auto parsed = parse(c.query);
    const auto* problem = std::get_if<Problem>(&parsed);
    REQUIRE(problem != nullptr);
    CHECK(problem->status == 400);
    CHECK(problem->parameter == c.parameter);
    CHECK(problem->detail.find(c.said) != std::string::npos);
  }
}

TEST_CASE("an endpoint without parameters says so") {
  const TimeContext context{WallTime{0}, [](WallTime) { return 0; }};
  const std::vector<QueryItem> query{{"verbose", "1"}};
  const auto parsed = Parameters::parse({}, query, context);
  REQUIRE(std::holds_alternative<Problem>(parsed));
  CHECK(std::get<Problem>(parsed).detail.find("takes no parameters") != std::string::npos);
}

}  // namespace
}  // namespace flamed::api
