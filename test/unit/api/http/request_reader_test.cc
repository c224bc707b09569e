// SPDX-License-Identifier: Apache-2.0
#include "api/http/request_reader.h"

#include <string>
#include <string_view>
#include <vector>

#include "api/http/request_line.h"
#include "api/http/request_parser.h"
#include "test/catch.h"

namespace flamed::api {
namespace {

HeadState read(std::string_view bytes) { return RequestReader().append(bytes); }

TEST_CASE("a head is complete with its empty line") {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  RequestReader reader;
  for (std::size_t i = 0; i + 1 < head.size(); ++i) CHECK(reader.append(head.substr(i, 1)) == HeadState::kIncomplete);
  CHECK(reader.append("\nGET /next") == HeadState::kComplete);
  CHECK(reader.head() == head);
  CHECK_FALSE(reader.has_body());
}

TEST_CASE("bytes after a request are the next one") {
  RequestReader reader;
  reader.append("GET /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /2 HTTP/1.0\r\n\r\nGET /3");
  CHECK(reader.has_body());
  CHECK(reader.next() == HeadState::kComplete);
  CHECK(reader.head() == "GET /2 HTTP/1.0\r\n\r\n");
  CHECK_FALSE(reader.has_body());
  CHECK(reader.next() == HeadState::kIncomplete);
  CHECK(reader.head() == "GET /3");
  CHECK_FALSE(reader.empty());
  CHECK(reader.append(" HTTP/1.0\r\n\r\n") == HeadState::kComplete);
  CHECK(reader.next() == HeadState::kIncomplete);
  CHECK(reader.empty());
}

TEST_CASE("line breaks before a request are skipped, up to a limit") {
  RequestReader reader;
  CHECK(reader.append("\r\n\r\nGET / HTTP/1.0\r\n\r\n") == HeadState::kComplete);
  CHECK(reader.head() == "GET / HTTP/1.0\r\n\r\n");
  CHECK(read("\r\n\r\n\r\n") == HeadState::kMalformed);
}

TEST_CASE("a head may be as long as the limit and no longer") {
  const std::string line = "GET / HTTP/1.1\r\nHost: a\r\n";
  const auto padded = [&](std::size_t bytes) {
    return line + "X: " + std::string(bytes - line.size() - 7, 'x') + "\r\n\r\n";
  };
  REQUIRE(padded(kMaxHeadBytes).size() == kMaxHeadBytes);
  CHECK(read(padded(kMaxHeadBytes)) == HeadState::kComplete);
  CHECK(read(padded(kMaxHeadBytes + 1)) == HeadState::kHeadersTooLarge);
  CHECK(read(line + std::string(100'000, 'x')) == HeadState::kHeadersTooLarge);

  const std::string frame = "GET / HTTP/1.0\r\n\r\n";
  CHECK(read("GET /" + std::string(kMaxHeadBytes - frame.size(), 'a') + " HTTP/1.0\r\n\r\n") == HeadState::kComplete);
  CHECK(read("GET /" + std::string(kMaxHeadBytes, 'a') + " HTTP/1.0\r\n\r\n") == HeadState::kUriTooLong);
  CHECK(read(std::string(kMaxHeadBytes, 'a')) == HeadState::kIncomplete);
  CHECK(read(std::string(kMaxHeadBytes + 1, 'a')) == HeadState::kUriTooLong);
}

TEST_CASE("a head that programs could read differently is malformed, with the reason") {
  struct Case {
    std::string_view bytes;
    std::string_view fault;
  };
  const std::string_view line_end = "a line that does not end in CR LF";
  const std::string_view first_line = "a first line that is not METHOD /PATH HTTP/1.1";
  const std::string_view header = "a header that is not NAME: VALUE";
  const Case cases[] = {
      {"GET / HTTP/1.1\nHost: a\r\n\r\n", line_end},
      {"GET / HTTP/1.1\r\nHost: a\n\r\n\r\n", line_end},
      {"\n", line_end},
      {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "a CR in the middle of a line"},
      {"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", "a CR in the middle of a line"},
      {std::string_view("GET /\0 HTTP/1.1\r\n\r\n", 19), "a NUL"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: \x1b[2J\r\n\r\n", "a control character"},
      {"\x16\x03\x01", "a control character"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n", "a control character"},
      {"GET /\r\n", first_line},
      {"GET  / HTTP/1.1\r\n", first_line},
      {"GET /  HTTP/1.1\r\n", first_line},
      {" GET / HTTP/1.1\r\n", first_line},
      {"GET /a b HTTP/1.1\r\n", first_line},
      {"GET /a\tb HTTP/1.1\r\n", first_line},
      {"GET / HTTP/1.1 \r\n", first_line},
      {"GET / HTTP/1.2\r\n", first_line},
      {"GET / HTTP/11\r\n", first_line},
      {"GET / http/1.1\r\n", first_line},
      {"PRI * HTTP/2.0\r\n", first_line},
      {"G\xc3\x84T / HTTP/1.1\r\n", first_line},
      {"GET,HEAD / HTTP/1.1\r\n", first_line},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", header},
      {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", header},
      {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", header},
      {"GET / HTTP/1.1\r\nHost\r\n\r\n", header},
      {"GET / HTTP/1.1\r\n: a\r\n\r\n", header},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length\t: 5\r\n\r\n", header},
      {"GET / HTTP/1.1\r\nHost: a\r\nHOST: a\r\n\r\n", "more than one Host header"},
      {"GET / HTTP/1.1\r\n\r\n", "no Host header"},
      {"GET / HTTP/1.1\r\nX-Host: a\r\n\r\n", "no Host header"},
      {"\r\n\r\n\r\n", "empty lines instead of a request"},
  };
  for (const Case& c : cases) {
    INFO(c.bytes);
    RequestReader reader;
    CHECK(reader.append(c.bytes) == HeadState::kMalformed);
    CHECK(reader.fault() == c.fault);
  }
}

TEST_CASE("a valid head is accepted") {
  for (const std::string_view head : {
           "GET / HTTP/1.0\r\n\r\n",
           "GET / HTTP/1.1\r\nHost:\r\n\r\n",
           "GET / HTTP/1.1\r\nhost:\ta\t\r\nX:\r\n\r\n",
           "GET /profile?comm=\xc3\xa4 HTTP/1.1\r\nHost: a\r\nX: \xc3\xa4\r\n\r\n",
           "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
           "M-SEARCH /a:b HTTP/1.1\r\nHost: a\r\nX: a: b\r\n\r\n",
       }) {
    INFO(head);
    CHECK(read(head) == HeadState::kComplete);
  }
}

TEST_CASE("a body is announced by its headers in any spelling") {
  struct Case {
    std::string_view header;
    bool has_body;
  };
  const Case cases[] = {
      {"Content-Length: 5", true},    {"content-length:5", true},     {"Content-Length: 0", false},
      {"Content-Length: 00", true},   {"Content-Length: -1", true},   {"Content-Length:", true},
      {"Content-Length: 0, 5", true}, {"Transfer-Encoding: x", true}, {"transfer-encoding:", true},
      {"X-Content-Length: 5", false}, {"Content-Lengthy: 5", false},  {"Content-Length: 0 ", false},
  };
  for (const Case& c : cases) {
    INFO(c.header);
    RequestReader reader;
    REQUIRE(reader.append("GET / HTTP/1.0\r\nA: b\r\n" + std::string(c.header) + "\r\n\r\n") == HeadState::kComplete);
    CHECK(reader.has_body() == c.has_body);
  }
  RequestReader twice;
  twice.append("GET / HTTP/1.0\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\n");
  CHECK(twice.has_body());
}

std::size_t ten_for_notes(std::string_view method, std::string_view target) {
  return method == "POST" && target == "/notes" ? 10 : 0;
}

const std::string kNote = "POST /notes HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";

TEST_CASE("a body is read where one is allowed, and the next request begins right after it") {
  RequestReader reader(ten_for_notes);
  CHECK(reader.append(kNote) == HeadState::kIncomplete);
  CHECK(reader.append("\r\n") == HeadState::kIncomplete);
  CHECK(reader.append("GETGET /2 HTTP/1.1\r\n") == HeadState::kComplete);
  CHECK(reader.head() == kNote);
  CHECK(reader.body() == "\r\nGET");
  CHECK_FALSE(reader.has_body());
  CHECK(reader.next() == HeadState::kIncomplete);
  CHECK(reader.append("Host: a\r\n\r\n") == HeadState::kComplete);
  CHECK(reader.head() == "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(reader.body().empty());
}

TEST_CASE("several requests with bodies may come at once, and byte by byte") {
  const std::string all = kNote + "12345" + kNote + "GET /" + "GET / HTTP/1.0\r\n\r\n";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, all.size()}) {
    RequestReader reader(ten_for_notes);
    std::vector<std::string> bodies;
    for (std::size_t at = 0; at < all.size(); at += piece) {
      HeadState state = reader.append(all.substr(at, piece));
      for (; state == HeadState::kComplete; state = reader.next()) bodies.emplace_back(reader.body());
      CHECK(state == HeadState::kIncomplete);
    }
    CHECK(bodies == std::vector<std::string>{"12345", "GET /", ""});
    CHECK(reader.empty());
  }
}

TEST_CASE("a body may be empty or as long as the limit, and no longer") {
  const auto state_of = [](const std::string& length, const std::string& body) {
    return RequestReader(ten_for_notes)
        .append("POST /notes HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + "\r\n\r\n" + body);
  };
  CHECK(state_of("0", "") == HeadState::kComplete);
  CHECK(state_of("010", "1234567890") == HeadState::kComplete);
  CHECK(state_of("10", "123456789") == HeadState::kIncomplete);
  CHECK(state_of("11", "") == HeadState::kBodyTooLarge);
  CHECK(state_of("18446744073709551616", "") == HeadState::kBodyTooLarge);
  CHECK(state_of(std::string(100, '9'), "") == HeadState::kBodyTooLarge);
}

TEST_CASE("a request whose length programs could read differently is refused, and nothing after it is read") {
  struct Case {
    std::string_view headers;
    HeadState state;
    std::string_view fault;
  };
  const std::string_view number = "a Content-Length that is not a number";
  const std::string_view twice = "more than one Content-Length header";
  const Case cases[] = {
      {"", HeadState::kLengthRequired, ""},
      {"X-Content-Length: 5\r\n", HeadState::kLengthRequired, ""},
      {"Transfer-Encoding: chunked\r\n", HeadState::kLengthRequired, ""},
      {"Transfer-Encoding: identity\r\n", HeadState::kLengthRequired, ""},
      {"Content-Length:\r\n", HeadState::kMalformed, number},
      {"Content-Length: +5\r\n", HeadState::kMalformed, number},
      {"Content-Length: -5\r\n", HeadState::kMalformed, number},
      {"Content-Length: 0x5\r\n", HeadState::kMalformed, number},
      {"Content-Length: 5 5\r\n", HeadState::kMalformed, number},
      {"Content-Length: 5, 5\r\n", HeadState::kMalformed, number},
      {"Content-Length: 5.0\r\n", HeadState::kMalformed, number},
      {"Content-Length: 5\r\nContent-Length: 5\r\n", HeadState::kMalformed, twice},
      {"Content-Length: 5\r\ncontent-length: 6\r\n", HeadState::kMalformed, twice},
      {"Content-Length: 0\r\nContent-Length: 5\r\n", HeadState::kMalformed, twice},
      {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", HeadState::kMalformed,
       "a Content-Length beside a Transfer-Encoding"},
      {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", HeadState::kMalformed,
       "a Content-Length beside a Transfer-Encoding"},
      {"Content-Length : 5\r\n", HeadState::kMalformed, "a header that is not NAME: VALUE"},
  };
  for (const Case& c : cases) {
    INFO(c.headers);
    RequestReader reader(ten_for_notes);
    const std::string request = "POST /notes HTTP/1.1\r\nHost: a\r\n" + std::string(c.headers) + "\r\n";
    CHECK(reader.append(request + "0\r\n\r\nGET / HTTP/1.0\r\n\r\n") == c.state);
    CHECK(reader.fault() == c.fault);
    CHECK(reader.body().empty());
  }
}

TEST_CASE("a body is only announced where none is allowed") {
  for (const std::string_view start : {"POST /notes/ HTTP/1.1", "POST /NOTES HTTP/1.1", "GET /notes HTTP/1.1",
                                       "HEAD /notes HTTP/1.1", "PUT /notes HTTP/1.1", "post /notes HTTP/1.1"}) {
    INFO(start);
    RequestReader reader(ten_for_notes);
    CHECK(reader.append(std::string(start) + "\r\nHost: a\r\nContent-Length: 5\r\n\r\n") == HeadState::kComplete);
    CHECK(reader.has_body());
    CHECK(reader.body().empty());
  }
}

TEST_CASE("a request line has its three parts") {
  const auto line = parse_request_line("HEAD /a?b HTTP/1.0\r\nX: y\r\n\r\n");
  REQUIRE(line.has_value());
  CHECK(line->method == "HEAD");
  CHECK(line->target == "/a?b");
  CHECK(line->minor_version == 0);
  CHECK(parse_request_line("GET / HTTP/1.1")->minor_version == 1);
  CHECK_FALSE(parse_request_line("").has_value());
}

TEST_CASE("a request has the content of its head") {
  const Peer peer{Peer::Transport::kUnix, 7};
  const auto [request, close] = parse_request(
      "HEAD /a?b HTTP/1.1\r\nHOST: h:1\r\nX: y\r\nAccept: text/html\r\naccept:\ttext/*\r\n"
      "Accept-Encoding: gzip\r\nOrigin: http://o\r\nSec-Fetch-Site: none\r\nAuthorization: Bearer t\r\n"
      "If-None-Match: \"e\"\r\nContent-Type: application/json\r\nConnection: keep-alive\r\n\r\n",
      peer);
  CHECK(request.method == "HEAD");
  CHECK(request.target == "/a?b");
  CHECK(request.host == "h:1");
  CHECK(request.accept == "text/html, text/*");
  CHECK(request.accept_encoding == "gzip");
  CHECK(request.origin == "http://o");
  CHECK(request.sec_fetch_site == "none");
  CHECK(request.authorization == "Bearer t");
  CHECK(request.if_none_match == "\"e\"");
  CHECK(request.content_type == "application/json");
  CHECK(request.peer.uid == 7U);
  CHECK_FALSE(request.has_body);
  CHECK_FALSE(close);
}

TEST_CASE("a connection is kept open unless the client says otherwise or speaks HTTP/1.0") {
  struct Case {
    std::string_view head;
    bool close;
  };
  const Case cases[] = {
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nConnection: Upgrade , CLOSE\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nConnection: closed\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nX: close\r\n\r\n", false},
      {"GET / HTTP/1.0\r\n\r\n", true},
      {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
  };
  for (const Case& c : cases) {
    INFO(c.head);
    CHECK(parse_request(c.head, {}).close == c.close);
  }
}

}  // namespace
}  // namespace flamed::api
