// SPDX-License-Identifier: Apache-2.0
#include "top/options.h"

#include <vector>

#include "test/catch.h"

namespace flamed::top {
namespace {

Result<Options> parse(std::vector<const char*> arguments) { return parse_options(arguments); }

TEST_CASE("without options the last minute is shown, every three seconds") {
  const auto options = parse({});
  REQUIRE(options.ok());
  CHECK(options->question.is_live());
  CHECK(options->question.last == "60s");
  CHECK(options->delay_s == 3);
  CHECK(!options->plain);
}

TEST_CASE("a value follows its flag as the next word, or after an equals sign") {
  const auto options =
      parse({"--from=now-1h", "-t", "now-50m", "--pid", "7", "-p", "8@9", "--focus=a=b", "-d", "0.5", "-H", "-b"});
  REQUIRE(options.ok());
  CHECK(options->question.from == "now-1h");
  CHECK(options->question.to == "now-50m");
  CHECK(options->question.pids == std::vector<std::string>{"7", "8@9"});
  CHECK(options->question.focus == "a=b");
  CHECK(options->delay_s == 0.5);
  CHECK(options->question.by_thread);
  CHECK(options->plain);
  CHECK(!options->question.is_live());
}

TEST_CASE("wrong options are refused") {
  for (const std::vector<const char*>& arguments : {std::vector<const char*>{"--colour"},
                                                    {"-d"},
                                                    {"-d", "0.1"},
                                                    {"-d", "1x"},
                                                    {"-n", "-1"},
                                                    {"--rows", ""},
                                                    {"-t", "now"},
                                                    {"12"}}) {
    CHECK(!parse(arguments).ok());
  }
}

}  // namespace
}  // namespace flamed::top
