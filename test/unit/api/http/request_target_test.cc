// SPDX-License-Identifier: Apache-2.0
#include "api/http/request_target.h"

#include "test/catch.h"

namespace flamed::api {
namespace {

std::string shown(const RequestTarget& target) {
  std::string out = target.path;
  for (const QueryItem& item : target.query) out += "|" + item.name + "=" + item.value;
  return out;
}

TEST_CASE("a request target is split and decoded") {
  struct Case {
    std::string_view target;
    std::string_view expected;
  };
  const Case cases[] = {
      {"/", "/"},
      {"/profile", "/profile"},
      {"/profile?", "/profile"},
      {"/profile?pid=1", "/profile|pid=1"},
      {"/profile?pid=1&from=now-15m", "/profile|pid=1|from=now-15m"},
      {"/profile?pid=1&pid=1", "/profile|pid=1|pid=1"},
      {"/profile?pid", "/profile|pid="},
      {"/profile?=1", "/profile|=1"},
      {"/profile?&&pid=1&", "/profile|pid=1"},
      {"/profile?a=b=c", "/profile|a=b=c"},
      {"/profile?a=b?c", "/profile|a=b?c"},
      {"/profile?a+b=c+d", "/profile|a b=c d"},
      {"/a+b%20c", "/a+b c"},
      {"/profile?from=14%3A05%3a10", "/profile|from=14:05:10"},
      {"/profile?a=1#pid=2", "/profile|a=1"},
      {"/%2e%2E/etc", "/../etc"},
  };
  for (const Case& c : cases) {
    INFO(c.target);
    const auto target = parse_request_target(c.target);
    CHECK(target.ok());
    if (target) CHECK(shown(*target) == c.expected);
  }
}

TEST_CASE("a NUL in a request target is an ordinary character") {
  const auto target = parse_request_target("/profile?pid=1%00");
  REQUIRE(target.ok());
  CHECK(target->query.at(0).value == std::string("1\0", 2));
}

TEST_CASE("a garbled request target is refused") {
  for (std::string_view text : {"", "profile", "*", "http://host/profile", "/%", "/%4", "/%zz", "/a?b=%", "/a?%0g=1"}) {
    INFO(text);
    CHECK_FALSE(parse_request_target(text).ok());
  }
}

}  // namespace
}  // namespace flamed::api
