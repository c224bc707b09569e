// SPDX-License-Identifier: Apache-2.0
#include "top/client.h"

#include "test/catch.h"

namespace flamed::top {
namespace {

TEST_CASE("an answer is its status and all that follows the head") {
  const auto answer = parse_answer("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nfirst\r\n\r\nsecond");
  REQUIRE(answer.ok());
  CHECK(answer->status == 200);
  CHECK(answer->body == "first\r\n\r\nsecond");
  CHECK(parse_answer("HTTP/1.1 404 Not Found\r\n\r\n")->status == 404);
}

TEST_CASE("what is no answer is an error") {
  for (const char* bytes :
       {"", "HTTP/1.1 200 OK\r\n", "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.\r\n\r\n"}) {
    INFO(bytes);
    CHECK(!parse_answer(bytes).ok());
  }
}

TEST_CASE("an address without flamed says so") {
  const auto refused = Client("unix:/nonexistent/flamed.sock").get("/profile");
  REQUIRE(!refused.ok());
  CHECK(refused.error().message().find("flamed is not there: cannot connect to /nonexistent/flamed.sock") == 0);
  CHECK(!Client("nowhere").get("/").ok());
  CHECK(!Client("unix:/" + std::string(200, 'a')).get("/").ok());
}

}  // namespace
}  // namespace flamed::top
