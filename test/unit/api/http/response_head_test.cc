// SPDX-License-Identifier: Apache-2.0
#include "api/http/response_head.h"

#include "test/catch.h"

namespace flamed::api {
namespace {

TEST_CASE("the head of an answer is its status and its headers by name") {
  Response response{200, "application/json", "{}"};
  response.headers = {{"Vary", "Accept"}, {"Cache-Control", "no-store"}};
  CHECK(response_head(response, 2, false) ==
        "HTTP/1.1 200 OK\r\nAccept-Ranges: none\r\nCache-Control: no-store\r\nContent-Length: 2\r\n"
        "Content-Type: application/json\r\nVary: Accept\r\n\r\n");
}

TEST_CASE("the last answer of a connection says so") {
  CHECK(response_head({404, "text/plain", ""}, 0, true) ==
        "HTTP/1.1 404 Not Found\r\nAccept-Ranges: none\r\nConnection: close\r\nContent-Length: 0\r\n"
        "Content-Type: text/plain\r\n\r\n");
}

TEST_CASE("a status without a phrase of its own has none") {
  CHECK(response_head({299, "text/plain", ""}, 0, false).starts_with("HTTP/1.1 299 \r\n"));
}

TEST_CASE("a value can't begin another header or the body") {
  Response response{200, "text/plain", ""};
  response.headers = {{"X-A", "a\r\nX-B: b"}, {"X-C", "c\nX-D: d"}, {"X-E", "e"}};
  const std::string head = response_head(response, 0, false);
  CHECK(head.find("X-B") == std::string::npos);
  CHECK(head.find("X-D") == std::string::npos);
  CHECK(head.find("X-E: e\r\n") != std::string::npos);
}

}  // namespace
}  // namespace flamed::api
