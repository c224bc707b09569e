// SPDX-License-Identifier: Apache-2.0
#include "api/question/parameters.h"

#include <array>

#include "test/catch.h"

namespace flamed::api {
namespace {

constexpr std::array<std::string_view, 2> kFormats{"flamegraph", "folded"};
constexpr std::array<ParameterSpec, 10> kTable{{
    {"pid", ParameterType::kProcesses, ""},
    {"from", ParameterType::kTime, ""},
    {"format", ParameterType::kChoice, "", kFormats},
    {"tid", ParameterType::kIntegers, "", {}, 1, 100},
    {"comm", ParameterType::kTexts, ""},
    {"lines", ParameterType::kFlag, "", {}, 0, 0, "0"},
    {"rows", ParameterType::kInteger, "", {}, 1, 1000},
    {"min_percent", ParameterType::kNumber, "", {}, 0, 100},
    {"seconds", ParameterType::kDuration, "", {}, 1, 3600, "30"},
    {"focus", ParameterType::kPattern, ""},
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

TEST_CASE("text that names no process is refused, and the valid forms are listed") {
  for (std::string_view text : {"", "0", "-1", "+1", " 1", "1 ", "0x1", "1.5", "2147483648", "99999999999999999999",
                                "abc", "1@", "@1", "1@-1", "1@x", "1@2@3", "1@18446744073709551616", "1,2"}) {
    INFO(text);
    const auto process = parse_process(text);
    REQUIRE_FALSE(process.ok());
    CHECK(process.error().message().find("1234@567890") != std::string::npos);
  }
}

TEST_CASE("parameters have their types, and missing ones their defaults") {
  const auto parsed = parse({{"pid", "7@8,9"},
                             {"pid", "10"},
                             {"from", "now-10s"},
                             {"tid", "1,2"},
                             {"comm", "a,b"},
                             {"comm", "c"},
                             {"lines", "true"},
                             {"rows", "7"},
                             {"min_percent", "0.5"},
                             {"seconds", "1m30s"},
                             {"focus", "^f+$"}});
  const auto* parameters = std::get_if<Parameters>(&parsed);
  REQUIRE(parameters != nullptr);
  REQUIRE(parameters->processes("pid").size() == 3);
  CHECK(parameters->processes("pid")[0].start_ticks == 8U);
  CHECK(parameters->processes("pid")[2].pid == 10);
  CHECK(parameters->time("from")->moment == WallTime{990 * kNsPerSecond});
  CHECK(parameters->choice("format") == "flamegraph");
  CHECK(parameters->integers("tid") == std::vector<std::int64_t>{1, 2});
  CHECK(parameters->texts("comm") == std::vector<std::string>{"a,b", "c"});
  CHECK(parameters->flag("lines"));
  CHECK(parameters->integer("rows") == 7);
  CHECK(parameters->number("min_percent") == 0.5);
  CHECK(parameters->duration_ns("seconds") == 90 * kNsPerSecond);
  REQUIRE(parameters->pattern("focus"));
  CHECK(parameters->pattern("focus")->matches("ff"));
  CHECK_FALSE(parameters->pattern("focus")->matches("fg"));

  const auto empty = parse({});
  REQUIRE(std::holds_alternative<Parameters>(empty));
  const auto& none = std::get<Parameters>(empty);
  CHECK(none.processes("pid").empty());
  CHECK(none.integers("tid").empty());
  CHECK(none.texts("comm").empty());
  CHECK_FALSE(none.time("from").has_value());
  CHECK_FALSE(none.flag("lines"));
  CHECK_FALSE(none.duration_ns("seconds").has_value());
  CHECK(none.default_duration_ns("seconds") == 30 * kNsPerSecond);
  CHECK_FALSE(none.pattern("focus").has_value());
  CHECK_FALSE(none.given("format"));
  CHECK(none.takes("format"));
  CHECK_FALSE(none.takes("colour"));
}

TEST_CASE("a bad parameter is refused by name") {
  struct Case {
    std::vector<QueryItem> query;
    std::string parameter;
    std::string said;
  };
  const Case cases[] = {
      {{{"pidd", "1"}}, "pidd", "Allowed are: pid, from, format, tid"},
      {{{"PID", "1"}}, "PID", "Allowed are: pid, from, format, tid"},
      {{{"", "1"}}, "", "Allowed are"},
      {{{"from", "now-1m"}, {"from", "now-1m"}}, "from", "more than once"},
      {{{"lines", "1"}, {"lines", "1"}}, "lines", "more than once"},
      {{{"pid", "1,"}}, "pid", "not a process"},
      {{{"pid", std::string(300, '1')}}, "pid", "not a process"},
      {std::vector<QueryItem>(101, {"pid", "1"}), "pid", "more than 100 values"},
      {std::vector<QueryItem>(101, {"comm", "x"}), "comm", "more than 100 values"},
      {{{"tid", "0"}}, "tid", "whole numbers from 1 to 100"},
      {{{"tid", "101"}}, "tid", "whole numbers from 1 to 100"},
      {{{"tid", "1,x"}}, "tid", "\"x\" is not possible as tid"},
      {{{"tid", "99999999999999999999"}}, "tid", "whole numbers"},
      {{{"comm", ""}}, "comm", "1 to 1024 bytes"},
      {{{"comm", std::string(1025, 'x')}}, "comm", "1 to 1024 bytes"},
      {{{"lines", "yes"}}, "lines", "1, 0, true, false"},
      {{{"lines", ""}}, "lines", "1, 0, true, false"},
      {{{"rows", "1.5"}}, "rows", "whole numbers from 1 to 1000"},
      {{{"rows", "-1"}}, "rows", "whole numbers from 1 to 1000"},
      {{{"min_percent", "100.1"}}, "min_percent", "numbers from 0 to 100"},
      {{{"min_percent", "nan"}}, "min_percent", "numbers from 0 to 100"},
      {{{"min_percent", "1e999"}}, "min_percent", "numbers from 0 to 100"},
      {{{"seconds", "0"}}, "seconds", "durations from 1 to 3600 seconds"},
      {{{"seconds", "2h"}}, "seconds", "durations from 1 to 3600 seconds"},
      {{{"seconds", "soon"}}, "seconds", "durations from 1 to 3600 seconds"},
      {{{"focus", "("}}, "focus", "missing )"},
      {{{"focus", ""}}, "focus", "it is empty"},
      {{{"focus", std::string(1025, 'x')}}, "focus", "longer than 1024 bytes"},
      {{{"focus", "((x{100}){100}){100}"}}, "focus", "can't be used"},
      {{{"focus", "(?P<n>x)\\1"}}, "focus", "can't be used"},
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
