// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/cpu_list.h"

#include <string>
#include <utility>
#include <vector>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

TEST_CASE("a list of CPUs is numbers and ranges") {
  const std::vector<std::pair<std::string, std::vector<int>>> cases{
      {"0\n", {0}}, {"0-3\n", {0, 1, 2, 3}}, {"0-1,8,10-11\n", {0, 1, 8, 10, 11}}, {"3", {3}}, {"5-5", {5}}, {"\n", {}},
      {"", {}},     {"65535", {65535}},
  };
  for (const auto& [text, cpus] : cases) {
    CAPTURE(text);
    const Result<std::vector<int>> parsed = parse_cpu_list(text);
    REQUIRE(parsed.ok());
    CHECK(*parsed == cpus);
  }
}

TEST_CASE("text that is no list of CPUs is refused") {
  for (const std::string text : {"a",    "-1",  "0-",   "-",     ",",       "0,",           ",0",
                                 "0,,1", "3-1", "1,0",  "0-3,3", "0-3,2-5", "0 1",          "0;1",
                                 "0x1",  "+1",  "0--1", "65536", "0-65536", "0-4294967296", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_cpu_list(text).ok());
  }
}

TEST_CASE("the error is one line and shows the text") {
  CHECK(parse_cpu_list("0-\n").error().message() == "not a list of CPUs: '0-'");
}

}  // namespace
}  // namespace flamed::daemon
