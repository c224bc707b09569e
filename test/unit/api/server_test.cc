// SPDX-License-Identifier: Apache-2.0
#include "api/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/gzip.h"
#include "base/handle.h"
#include "test/catch.h"
#include "test/unit/api/fake_sources.h"

namespace flamed::api {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

std::unique_ptr<Server> start(Sources& sources, std::size_t threads = 2) {
  auto server = Server::listen({"127.0.0.1", 0, threads, std::chrono::milliseconds(0)}, sources);
  REQUIRE(server.ok());
  return std::move(*server);
}

/// A client that sends and receives bytes as it likes.
class Client {
 public:
  explicit Client(const Server& server) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const timeval limit{10, 0};
    REQUIRE(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  }

  Client& send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) break;  // the server may have answered and hung up already
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return *this;
  }

  [[nodiscard]] int descriptor() const { return socket_.get(); }

  /// Everything up to the server's hanging up.
  std::string rest() {
    std::string all;
    char piece[4096];
    ssize_t count = 0;
    while ((count = ::recv(socket_.get(), piece, sizeof piece, 0)) > 0)
      all.append(piece, static_cast<std::size_t>(count));
    return all;
  }

  /// One answer with a Content-Length, from a connection that stays open.
  std::string answer() {
    std::string all;
    char byte = 0;
    while (all.find("\r\n\r\n") == std::string::npos && ::recv(socket_.get(), &byte, 1, 0) == 1) all += byte;
    const std::size_t at = all.find("Content-Length: ");
    REQUIRE(at != std::string::npos);
    for (auto left = std::stoul(all.substr(at + 16)); left > 0 && ::recv(socket_.get(), &byte, 1, 0) == 1; --left)
      all += byte;
    return all;
  }

 private:
  Fd socket_;
};

std::string ask(const Server& server, const std::string& request) { return Client(server).send(request).rest(); }

std::string get(const Server& server, const std::string& target, const std::string& more = "",
                const std::string& method = "GET") {
  return ask(server, method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + more + "\r\n");
}

int status_of(const std::string& answer) {
  REQUIRE(answer.substr(0, 9) == "HTTP/1.1 ");
  return std::stoi(answer.substr(9, 3));
}

std::string body_of(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

std::size_t occurrences(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct Fixture {
  explicit Fixture(std::size_t threads = 2) : server(start(sources, threads)) {
    sources.add_process({123, 4567}, "worker");
    for (int i = 0; i < 100; ++i) sources.add_samples({123, 4567}, "worker", {"main", "f" + std::to_string(i)}, 1);
  }
  FakeSources sources;
  std::unique_ptr<Server> server;
};

TEST_CASE("a client is answered over a socket") {
  Fixture fixture;
  const std::string answer = get(*fixture.server, "/profile?pid=123");
  CHECK(status_of(answer) == 200);
  CHECK(json::parse(body_of(answer))["value"] == 100);
  CHECK(occurrences(answer, "Content-Security-Policy: default-src 'self'") == 1);
  CHECK(occurrences(answer, "Content-Length: ") == 1);
  CHECK(fixture.server->requests() == 1);
}

TEST_CASE("HEAD has the headers of GET and no body") {
  Fixture fixture;
  const std::string get_answer = get(*fixture.server, "/profile?pid=123");
  const std::string head_answer = get(*fixture.server, "/profile?pid=123", "", "HEAD");
  CHECK(status_of(head_answer) == 200);
  CHECK(body_of(head_answer).empty());
  const std::string length = "Content-Length: " + std::to_string(body_of(get_answer).size()) + "\r\n";
  CHECK(occurrences(head_answer, length) == 1);
  CHECK(status_of(get(*fixture.server, "/nothing", "", "HEAD")) == 404);
}

TEST_CASE("a large answer comes compressed once") {
  Fixture fixture;
  const std::string answer = get(*fixture.server, "/profile?pid=123", "Accept-Encoding: gzip, deflate, br\r\n");
  CHECK(occurrences(answer, "Content-Encoding: gzip\r\n") == 1);
  const std::string body = body_of(answer);
  const auto plain = gunzip({reinterpret_cast<const unsigned char*>(body.data()), body.size()});
  REQUIRE(plain.ok());
  CHECK(json::parse(*plain)["value"] == 100);
}

TEST_CASE("what is over a limit or garbled is refused with a problem") {
  struct Case {
    std::string name;
    std::string request;
    int status;
    std::string kind;
  };
  const std::string host = "Host: x\r\nConnection: close\r\n";
  const Case cases[] = {
      {"other method", "POST /profile HTTP/1.1\r\n" + host + "\r\n", 405, "method-not-allowed"},
      {"method nobody knows", "BREW /profile HTTP/1.1\r\n" + host + "\r\n", 400, "bad-request"},
      {"long address", "GET /profile?pid=" + std::string(9000, '1') + " HTTP/1.1\r\n" + host + "\r\n", 414,
       "uri-too-long"},
      {"endless address", "GET /" + std::string(100'000, 'a'), 414, "uri-too-long"},
      {"large header", "GET / HTTP/1.1\r\n" + host + "X: " + std::string(9000, 'a') + "\r\n\r\n", 431,
       "headers-too-large"},
      {"endless headers", "GET / HTTP/1.1\r\n" + std::string(100'000, 'a'), 431, "headers-too-large"},
      {"body", "POST /profile HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello", 413, "body-refused"},
      {"body with GET", "GET /profile HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello", 413, "body-refused"},
      {"body announced",
       "PUT /profile HTTP/1.1\r\n" + host + "Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n", 413,
       "body-refused"},
      {"body in chunks", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
       413, "body-refused"},
      {"large body", "POST / HTTP/1.1\r\n" + host + "Content-Length: 200000\r\n\r\n" + std::string(200'000, 'a'), 413,
       "body-refused"},
      {"no version", "GET /\r\n\r\n", 400, "bad-request"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "bad-request"},
      {"TLS", std::string("\x16\x03\x01\x00\xf8\x01\x00\x00\xf4\x03\x03\n", 12), 400, "bad-request"},
      {"line feeds", "GET / HTTP/1.1\n\n", 400, "bad-request"},
      {"NUL", std::string("GET /\0 HTTP/1.1\r\n\r\n", 19), 400, "bad-request"},
      {"bad parameter", "GET /profile?pid=x HTTP/1.1\r\n" + host + "\r\n", 400, "bad-parameter"},
      {"unknown path", "GET /x HTTP/1.1\r\n" + host + "\r\n", 404, "unknown-path"},
  };
  Fixture fixture;
  for (const Case& c : cases) {
    INFO(c.name);
    const std::string answer = ask(*fixture.server, c.request);
    CHECK(status_of(answer) == c.status);
    CHECK(occurrences(answer, "Content-Type: application/problem+json\r\n") == 1);
    CHECK(json::parse(body_of(answer))["type"] == "urn:flamed:problem:" + c.kind);
    CHECK(occurrences(answer, "HTTP/1.1 " + std::to_string(c.status)) == 1);
  }
  CHECK(status_of(get(*fixture.server, "/healthz")) == 200);
}

TEST_CASE("a part of an answer is not served") {
  Fixture fixture;
  const std::string answer = get(*fixture.server, "/profile", "Range: bytes=0-9\r\n");
  CHECK(status_of(answer) == 200);
  CHECK_NOTHROW(json::parse(body_of(answer)));
}

TEST_CASE("a connection carries several requests, also those sent ahead") {
  Fixture fixture;
  Client client(*fixture.server);
  const std::string request = "GET /version HTTP/1.1\r\nHost: x\r\n\r\n";
  CHECK(status_of(client.send(request).answer()) == 200);
  client.send(request + request);
  CHECK(status_of(client.answer()) == 200);
  CHECK(status_of(client.answer()) == 200);
  CHECK(fixture.server->requests() == 3);
}

TEST_CASE("requests that wait for samples hold up nobody and are answered in time") {
  Fixture fixture(1);
  std::vector<std::unique_ptr<Client>> waiting;
  const auto start = Clock::now();
  for (int i = 0; i < 10; ++i) {
    waiting.push_back(std::make_unique<Client>(*fixture.server));
    waiting.back()->send("GET /profile?seconds=2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  CHECK(status_of(get(*fixture.server, "/version")) == 200);
  CHECK(Clock::now() - start < std::chrono::seconds(2));
  for (const auto& client : waiting) {
    const std::string answer = client->rest();
    CHECK(status_of(answer) == 200);
    CHECK(json::accept(body_of(answer)));
  }
  CHECK(Clock::now() - start >= std::chrono::seconds(2));
}

TEST_CASE("there is a bound on requests that wait, and clients that went away do not count") {
  Fixture fixture(2);
  const std::string request = "GET /debug/pprof/profile?seconds=60 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  std::vector<std::unique_ptr<Client>> waiting;
  for (int i = 0; i < 64; ++i) {
    waiting.push_back(std::make_unique<Client>(*fixture.server));
    waiting.back()->send(request);
  }
  // Each takes a place some time after it was sent: those asked here are turned away once all are taken.
  std::string answer;
  for (int i = 0; i < 100 && answer.empty(); ++i) {
    Client one_more(*fixture.server);
    one_more.send(request);
    pollfd readable{one_more.descriptor(), POLLIN, 0};
    if (::poll(&readable, 1, 100) == 1) answer = one_more.rest();
  }
  REQUIRE_FALSE(answer.empty());
  CHECK(status_of(answer) == 503);
  CHECK(answer.find("too-many-waiting") != std::string::npos);
  waiting.clear();
  for (int i = 0; i < 100 && status_of(answer) == 503; ++i) {
    answer = get(*fixture.server, "/profile?seconds=1");
  }
  CHECK(status_of(answer) == 200);
}

TEST_CASE("idle clients give up their thread to those that wait") {
  Fixture fixture(1);
  Client idle(*fixture.server);
  CHECK(status_of(idle.send("GET /version HTTP/1.1\r\nHost: x\r\n\r\n").answer()) == 200);
  Client silent(*fixture.server);
  const auto start = Clock::now();
  CHECK(status_of(get(*fixture.server, "/healthz")) == 200);
  CHECK(Clock::now() - start < std::chrono::seconds(3));
}

TEST_CASE("clients are served when descriptors have large numbers") {
  // select(), which the HTTP library uses, cannot name descriptors from 1,024 on.
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_cur < 2048) {
    limit.rlim_cur = std::min<rlim_t>(2048, limit.rlim_max);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
  if (limit.rlim_cur < 2048) {
    WARN("SKIP: the limit of open descriptors is " << limit.rlim_max);
    return;
  }
  Fixture fixture;
  std::vector<Fd> held;
  while (held.empty() || held.back().get() < 1100) held.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK(status_of(get(*fixture.server, "/version")) == 200);
}

TEST_CASE("a port that is taken is told with its owner") {
  Fixture fixture;
  const std::uint16_t port = fixture.server->port();
  const auto second = Server::listen({"127.0.0.1", port, 1}, fixture.sources);
  REQUIRE_FALSE(second.ok());
  const std::string& message = second.error().message();
  INFO(message);
  CHECK(message.starts_with("cannot listen on 127.0.0.1:" + std::to_string(port) + ": it is taken by "));
  CHECK(message.find("(pid " + std::to_string(::getpid()) + ")") != std::string::npos);
  CHECK(message.ends_with("choose another with --listen 127.0.0.1:" + std::to_string(port + 1)));
  CHECK(second.error().code() == EADDRINUSE);
}

TEST_CASE("an address that is not this host's is refused with what to do") {
  FakeSources sources;
  for (const std::string host : {"192.0.2.1", "no such host"}) {
    const auto server = Server::listen({host, 0, 1}, sources);
    REQUIRE_FALSE(server.ok());
    CHECK(server.error().message().find(host) != std::string::npos);
  }
}

TEST_CASE("a port can be had again as soon as its server is gone") {
  FakeSources sources;
  auto first = start(sources);
  const std::uint16_t port = first->port();
  CHECK(status_of(get(*first, "/version")) == 200);
  first.reset();
  const auto second = Server::listen({"127.0.0.1", port, 1}, sources);
  CHECK(second.ok());
}

TEST_CASE("a server ends within a second whatever its clients do") {
  FakeSources sources;
  for (int i = 0; i < 20'000; ++i) sources.add_samples({1, 1}, "worker", {"main", "f" + std::to_string(i)}, 1);
  auto server = start(sources, 4);
  Client silent(*server);
  Client half(*server);
  half.send("GET / HTT");
  Client not_reading(*server);
  for (int i = 0; i < 20; ++i) not_reading.send("GET /profile HTTP/1.1\r\nHost: x\r\n\r\n");
  Client idle(*server);
  CHECK(status_of(idle.send("GET /version HTTP/1.1\r\nHost: x\r\n\r\n").answer()) == 200);
  const auto start = Clock::now();
  server.reset();
  CHECK(Clock::now() - start < std::chrono::seconds(1));
}

}  // namespace
}  // namespace flamed::api
