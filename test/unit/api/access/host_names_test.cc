// SPDX-License-Identifier: Apache-2.0
#include "api/access/host_names.h"

#include "test/catch.h"

namespace flamed::api {
namespace {

HostNames names_of(std::string_view host, std::uint16_t port = 9090) {
  HostNames names;
  names.add(host, port);
  return names;
}

TEST_CASE("a socket on loopback accepts its address and localhost as Host, with its port") {
  const HostNames v4 = names_of("127.0.0.1");
  CHECK(v4.has("127.0.0.1:9090"));
  CHECK(v4.has("localhost:9090"));
  CHECK(v4.has("LocalHost:9090"));
  CHECK_FALSE(v4.has("[::1]:9090"));
  CHECK_FALSE(v4.has("localhost"));
  CHECK_FALSE(v4.has("localhost:9091"));
  CHECK_FALSE(v4.has("127.0.0.2:9090"));
  const HostNames v6 = names_of("::1");
  CHECK(v6.has("[::1]:9090"));
  CHECK(v6.has("localhost:9090"));
  CHECK_FALSE(v6.has("::1:9090"));
  CHECK_FALSE(v6.has("127.0.0.1:9090"));
}

TEST_CASE("the port may be left out where it is 80") {
  CHECK(names_of("127.0.0.1", 80).has("localhost"));
  CHECK(names_of("127.0.0.1", 80).has("localhost:80"));
  CHECK(names_of("::1", 80).has("[::1]"));
}

TEST_CASE("a socket on all addresses accepts any address, which DNS can't forge, and localhost as Host") {
  for (const char* any : {"0.0.0.0", "::", ""}) {
    CAPTURE(any);
    const HostNames names = names_of(any);
    CHECK(names.has("192.0.2.7:9090"));
    CHECK(names.has("[2001:db8::7]:9090"));
    CHECK(names.has("127.0.0.1:9090"));
    CHECK(names.has("localhost:9090"));
    CHECK_FALSE(names.has("0.0.0.0:9090"));
    CHECK_FALSE(names.has("192.0.2.7:9091"));
    CHECK_FALSE(names.has("flamed.example:9090"));
  }
}

TEST_CASE("a socket on a name accepts only that name as Host") {
  const HostNames names = names_of("Build7.example");
  CHECK(names.has("build7.example:9090"));
  CHECK_FALSE(names.has("localhost:9090"));
  CHECK_FALSE(names.has("example:9090"));
  CHECK_FALSE(names.has("build7.example.evil.example:9090"));
}

TEST_CASE("text that is not a host and port is no name") {
  HostNames names = names_of("0.0.0.0");
  names.add("::1", 9090);
  for (const char* header : {"",
                             ":",
                             ":9090",
                             "localhost:",
                             "localhost:0",
                             "localhost:9090x",
                             "localhost:99999",
                             "localhost:9090:9090",
                             "localhost:9090, localhost:9090",
                             "localhost.:9090",
                             "user@localhost:9090",
                             "[localhost]:9090",
                             "[::1:9090",
                             "[::1]9090",
                             "::1",
                             "127.1:9090",
                             "0x7f000001:9090",
                             "2130706433:9090",
                             "127.0.0.1.:9090",
                             "localhost:9090/"}) {
    CAPTURE(header);
    CHECK_FALSE(names.has(header));
  }
}

TEST_CASE("a Unix socket accepts no Host, localhost and loopback addresses, with any port") {
  for (const char* header : {"", "localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080"}) {
    CAPTURE(header);
    CHECK(is_unix_host(header));
  }
  for (const char* header : {"evil.example", "evil.example:9090", "192.0.2.7", "localhost.evil.example", "0.0.0.0"}) {
    CAPTURE(header);
    CHECK_FALSE(is_unix_host(header));
  }
}

TEST_CASE("a request with a wrong Host is told the right ones") {
  CHECK(names_of("127.0.0.1").list() == "localhost:9090, 127.0.0.1:9090");
  CHECK(names_of("::").list() == "localhost:9090 and this host's addresses");
}

}  // namespace
}  // namespace flamed::api
