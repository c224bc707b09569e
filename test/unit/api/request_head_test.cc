// SPDX-License-Identifier: Apache-2.0
#include "api/request_head.h"

#include "test/catch.h"

namespace flamed::api {
namespace {

TEST_CASE("a head is complete with its empty line") {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t length = 0; length < head.size(); ++length) {
    CHECK(scan_request_head(head.substr(0, length)).state == HeadState::kIncomplete);
  }
  const RequestHead complete = scan_request_head(head + "GET /next");
  CHECK(complete.state == HeadState::kComplete);
  CHECK(complete.begin == 0);
  CHECK(complete.end == head.size());
}

TEST_CASE("a head without headers is complete") {
  CHECK(scan_request_head("GET / HTTP/1.1\r\n\r\n").state == HeadState::kComplete);
}

TEST_CASE("line breaks before a request are skipped") {
  const RequestHead head = scan_request_head("\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  CHECK(head.state == HeadState::kComplete);
  CHECK(head.begin == 4);
}

TEST_CASE("a request line may be as long as the limit and no longer") {
  const std::string frame = "GET / HTTP/1.1\r\n";
  const std::string longest = "GET /" + std::string(kMaxRequestLineBytes - frame.size(), 'a') + " HTTP/1.1\r\n";
  REQUIRE(longest.size() == kMaxRequestLineBytes);
  CHECK(scan_request_head(longest + "\r\n").state == HeadState::kComplete);
  // In pieces too: no prefix of what is allowed is refused.
  CHECK(scan_request_head(longest).state == HeadState::kIncomplete);
  CHECK(scan_request_head(longest.substr(0, longest.size() - 1)).state == HeadState::kIncomplete);
  CHECK(scan_request_head("X" + longest + "\r\n").state == HeadState::kUriTooLong);
  CHECK(scan_request_head(std::string(kMaxRequestLineBytes, 'a')).state == HeadState::kUriTooLong);
}

TEST_CASE("headers may be as large as the limit in total and no larger") {
  const std::string line = "GET / HTTP/1.1\r\n";
  std::string headers;
  while (headers.size() + 64 <= kMaxHeaderBytes) headers += "X: " + std::string(59, 'a') + "\r\n";
  REQUIRE(headers.size() == kMaxHeaderBytes);
  CHECK(scan_request_head(line + headers + "\r\n").state == HeadState::kComplete);
  CHECK(scan_request_head(line + headers + "Y:1\r\n\r\n").state == HeadState::kHeadersTooLarge);
  CHECK(scan_request_head(line + "X: " + std::string(kMaxHeaderBytes, 'a')).state == HeadState::kHeadersTooLarge);
}

TEST_CASE("a line feed alone and a NUL make a head malformed") {
  CHECK(scan_request_head("GET / HTTP/1.1\nHost: a\r\n\r\n").state == HeadState::kMalformed);
  CHECK(scan_request_head("GET / HTTP/1.1\r\nHost: a\n\r\n\r\n").state == HeadState::kMalformed);
  CHECK(scan_request_head(std::string("GET /\0 HTTP/1.1\r\n\r\n", 19)).state == HeadState::kMalformed);
  CHECK(scan_request_head("GET / HTTP/1.1\r\n\r\n\nrest").state == HeadState::kComplete);
}

TEST_CASE("a body is announced by its headers in any spelling") {
  struct Case {
    std::string_view header;
    bool has_body;
  };
  const Case cases[] = {
      {"Content-Length: 5", true},          {"content-length:5", true},
      {"CONTENT-LENGTH : 5", true},         {"Content-Length: 0", false},
      {"Content-Length: 00", true},         {"Content-Length: -1", true},
      {"Transfer-Encoding: chunked", true}, {"transfer-encoding:", true},
      {"X-Content-Length: 5", false},       {"Content-Length", false},
      {"Content-Lengthy: 5", false},
  };
  for (const Case& c : cases) {
    INFO(c.header);
    const RequestHead head = scan_request_head("GET / HTTP/1.1\r\nA: b\r\n" + std::string(c.header) + "\r\n\r\n");
    REQUIRE(head.state == HeadState::kComplete);
    CHECK(head.has_body == c.has_body);
  }
}

TEST_CASE("only headers that are read are passed on") {
  CHECK(keep_known_headers("GET / HTTP/1.1\r\nHOST: a\r\nRange: bytes=0-1\r\nExpect: 100-continue\r\n"
                           "Accept-Encoding: gzip\r\nConnection: close\r\n\r\n") ==
        "GET / HTTP/1.1\r\nHOST: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n");
  CHECK(keep_known_headers("Host: / HTTP/1.1\r\n\r\n") == "Host: / HTTP/1.1\r\n\r\n");
}

}  // namespace
}  // namespace flamed::api
