// SPDX-License-Identifier: Apache-2.0
#include "api/server/server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "api/text/gzip.h"
#include "base/handle.h"
#include "test/catch.h"
#include "test/unit/api/answer/fake_sources.h"
#include "test/unit/api/socket/raw_client.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::api {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

ServerOptions options_for(const ListenAddress& address, std::size_t threads = 1) {
  ServerOptions options;
  options.addresses = {address};
  options.threads = threads;
  options.drain_time = std::chrono::milliseconds(0);
  return options;
}

std::unique_ptr<Server> start(Sources& sources, std::size_t threads = 2) {
  auto server = Server::listen(options_for({"127.0.0.1", 0}, threads), sources);
  REQUIRE(server.ok());
  return std::move(*server);
}

/// As a client names it.
std::string host_of(const Server& server) { return "Host: localhost:" + std::to_string(server.port()) + "\r\n"; }

std::string ask(const Server& server, const std::string& request) {
  return RawClient(server.port()).send(request).rest();
}

std::string get(const Server& server, const std::string& target, const std::string& more = "",
                const std::string& method = "GET") {
  return ask(server,
             method + " " + target + " HTTP/1.1\r\n" + host_of(server) + "Connection: close\r\n" + more + "\r\n");
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

TEST_CASE("a large answer is compressed exactly once") {
  Fixture fixture;
  const std::string answer = get(*fixture.server, "/profile?pid=123", "Accept-Encoding: gzip, deflate, br\r\n");
  CHECK(occurrences(answer, "Content-Encoding: gzip\r\n") == 1);
  const std::string body = body_of(answer);
  const auto plain = gunzip({reinterpret_cast<const unsigned char*>(body.data()), body.size()});
  REQUIRE(plain.ok());
  CHECK(json::parse(*plain)["value"] == 100);
}

TEST_CASE("a request over a limit or malformed is refused with a problem") {
  struct Case {
    std::string name;
    std::string request;
    int status;
    std::string kind;
  };
  Fixture fixture;
  const std::string host = host_of(*fixture.server) + "Connection: close\r\n";
  const Case cases[] = {
      {"other method", "POST /profile HTTP/1.1\r\n" + host + "\r\n", 405, "method-not-allowed"},
      {"method nobody knows", "BREW /profile HTTP/1.1\r\n" + host + "\r\n", 405, "method-not-allowed"},
      {"method of the whole server", "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", 405, "method-not-allowed"},
      {"tunnel", "CONNECT a:1 HTTP/1.1\r\n" + host + "\r\n", 405, "method-not-allowed"},
      {"method in small letters", "get / HTTP/1.1\r\n" + host + "\r\n", 405, "method-not-allowed"},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400, "bad-request"},
      {"two hosts", "GET / HTTP/1.1\r\n" + host + "Host: y\r\n\r\n", 400, "bad-request"},
      {"folded header", "GET / HTTP/1.1\r\n" + host + "X: a\r\n b\r\n\r\n", 400, "bad-request"},
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

std::string post_mark(const Server& server, const std::string& body, const std::string& more = "") {
  return "POST /marks HTTP/1.1\r\n" + host_of(server) +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more + "\r\n" +
         body;
}

std::size_t notes_of(const Server& server, FakeSources& sources) {
  sources.clock_.advance_ns(kNsPerMs);
  return occurrences(get(server, "/marks"), "\"kind\":\"note\"");
}

TEST_CASE("a mark is set over a socket, and the requests after it are read from the right byte on") {
  Fixture fixture;
  const std::string host = host_of(*fixture.server);
  const std::string version = "GET /version HTTP/1.1\r\n" + host + "\r\n";
  const std::string mark = post_mark(*fixture.server, R"({"text": "GET / HTTP/1.1"})");
  RawClient client(fixture.server->port());
  client.send(mark + version + mark + version);
  for (const int status : {201, 200, 201, 200}) CHECK(status_of(client.answer()) == status);
  // Bit by bit.
  for (const char c : mark) client.send({&c, 1});
  CHECK(status_of(client.answer()) == 201);
  // One that is refused for its content.
  client.send(post_mark(*fixture.server, "{}") + version);
  CHECK(status_of(client.answer()) == 400);
  CHECK(status_of(client.answer()) == 200);
  CHECK(notes_of(*fixture.server, fixture.sources) == 3);
}

TEST_CASE("clients that send the same mark at the same time each set one") {
  Fixture fixture(1);
  const std::string mark = post_mark(*fixture.server, R"({"text": "x"})");
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<RawClient>(fixture.server->port()));
    clients.back()->send(mark);
  }
  for (const auto& client : clients) CHECK(status_of(client->answer()) == 201);
  CHECK(notes_of(*fixture.server, fixture.sources) == 10);
}

TEST_CASE("a body that would hide a request is refused, and the connection is closed behind the refusal") {
  Fixture fixture;
  const std::string hidden = "POST /marks HTTP/1.1\r\n" + host_of(*fixture.server) +
                             "Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"text\": \"x\"}";
  struct Case {
    std::string start;
    std::string headers;
    std::string body;
    int status;
    std::string kind;
  };
  const Case cases[] = {
      {"POST /marks", "", "", 411, "length-required"},
      {"POST /marks", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n", 411, "length-required"},
      {"POST /marks", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n", 400, "bad-request"},
      {"POST /marks", "Content-Length: 5\r\nContent-Length: 0\r\n", "", 400, "bad-request"},
      {"POST /marks", "Content-Length: 0\r\nContent-Length: 5\r\n", "", 400, "bad-request"},
      {"POST /marks", "Content-Length: 5, 5\r\n", "", 400, "bad-request"},
      {"POST /marks", "Content-Length: +0\r\n", "", 400, "bad-request"},
      {"POST /marks", "Content-Length: 4097\r\n", "", 413, "body-too-large"},
      {"POST /marks", "Content-Length: 99999999999999999999999\r\n", "", 413, "body-too-large"},
      {"POST /marks", "Content-Length : 0\r\n", "", 400, "bad-request"},
      {"GET /marks", "Content-Length: 5\r\n", "", 413, "body-refused"},
      {"HEAD /marks", "Transfer-Encoding: chunked\r\n", "", 413, "body-refused"},
      {"POST /profile", "Content-Length: 5\r\n", "", 413, "body-refused"},
      {"POST /%6darks", "Content-Length: 5\r\n", "", 413, "body-refused"},
      {"PUT /marks", "Content-Length: 5\r\n", "", 413, "body-refused"},
  };
  for (const Case& c : cases) {
    INFO(c.start << " " << c.headers);
    const std::string answer = ask(
        *fixture.server, c.start + " HTTP/1.1\r\n" + host_of(*fixture.server) + c.headers + "\r\n" + c.body + hidden);
    CHECK(status_of(answer) == c.status);
    CHECK(occurrences(answer, "\r\nContent-Type: ") == 1);
    CHECK(occurrences(answer, "Connection: close\r\n") == 1);
    if (!c.start.starts_with("HEAD")) CHECK(json::parse(body_of(answer))["type"] == "urn:flamed:problem:" + c.kind);
  }
  CHECK(notes_of(*fixture.server, fixture.sources) == 0);
}

TEST_CASE("a body that does not arrive in time is refused like a head") {
  FakeSources sources;
  ServerOptions options = options_for({"127.0.0.1", 0});
  options.limits.connection.receive = std::chrono::milliseconds(100);
  const auto server = Server::listen(std::move(options), sources);
  REQUIRE(server.ok());
  const std::string mark = post_mark(**server, R"({"text": "x"})");
  CHECK(status_of(ask(**server, mark.substr(0, mark.size() - 1))) == 408);
}

TEST_CASE("a part of an answer is not served") {
  Fixture fixture;
  const std::string answer = get(*fixture.server, "/profile", "Range: bytes=0-9\r\n");
  CHECK(status_of(answer) == 200);
  CHECK(json::accept(body_of(answer)));
}

TEST_CASE("a connection carries several requests, also those sent ahead") {
  Fixture fixture;
  RawClient client(fixture.server->port());
  const std::string request = "GET /version HTTP/1.1\r\n" + host_of(*fixture.server) + "\r\n";
  CHECK(status_of(client.send(request).answer()) == 200);
  client.send(request + request);
  CHECK(status_of(client.answer()) == 200);
  CHECK(status_of(client.answer()) == 200);
  CHECK(fixture.server->requests() == 3);
}

TEST_CASE("requests that wait for samples delay no others and are answered in time") {
  Fixture fixture(1);
  std::vector<std::unique_ptr<RawClient>> waiting;
  const auto start = Clock::now();
  for (int i = 0; i < 10; ++i) {
    waiting.push_back(std::make_unique<RawClient>(fixture.server->port()));
    waiting.back()->send("GET /profile?seconds=4 HTTP/1.1\r\n" + host_of(*fixture.server) +
                         "Connection: close\r\n\r\n");
  }
  CHECK(status_of(get(*fixture.server, "/version")) == 200);
  CHECK(Clock::now() - start < std::chrono::seconds(4));
  for (const auto& client : waiting) {
    const std::string answer = client->rest();
    CHECK(status_of(answer) == 200);
    CHECK(json::accept(body_of(answer)));
  }
  CHECK(Clock::now() - start >= std::chrono::seconds(4));
}

TEST_CASE("as many requests may wait as there are places, and others are answered meanwhile") {
  Fixture fixture(2);
  const std::string request =
      "GET /debug/pprof/profile?seconds=60 HTTP/1.1\r\n" + host_of(*fixture.server) + "Connection: close\r\n\r\n";
  std::vector<std::unique_ptr<RawClient>> waiting;
  for (int i = 0; i < 120; ++i) {
    waiting.push_back(std::make_unique<RawClient>(fixture.server->port()));
    waiting.back()->send(request);
  }
  CHECK(status_of(get(*fixture.server, "/profile?seconds=1")) == 200);
  for (const auto& client : waiting) CHECK_FALSE(client->hears(std::chrono::milliseconds(0)));
}

/// Measures waits, of process 123 only.
class MeasuringSources : public FakeSources {
 public:
  std::optional<OffCpuRefusal> begin_off_cpu(const OffCpuRequest& request) override {
    const std::lock_guard guard(mutex);
    requests.push_back(request);
    if (requests.size() > 1) return OffCpuRefusal{OffCpuRefusal::Why::kBusy, "another one is being measured", 0};
    return std::nullopt;
  }
  void cancel_off_cpu(WallTime asked) override {
    const std::lock_guard guard(mutex);
    cancelled.push_back(asked);
  }
  std::optional<OffCpuAnswer> take_off_cpu(WallTime asked) override {
    const std::lock_guard guard(mutex);
    if (requests.empty() || requests.front().asked != asked) return std::nullopt;
    return OffCpuAnswer{store_.snapshot(), {asked, {asked.ns + kNsPerSecond}}, {"It took long."}};
  }
  std::mutex mutex;
  std::vector<OffCpuRequest> requests;
  std::vector<WallTime> cancelled;
};

TEST_CASE("waits are measured from the request on, and answered when its time is over") {
  MeasuringSources sources;
  sources.running_ = {{123, ::getuid()}};
  const auto server = start(sources);
  const std::string answer = get(*server, "/off_cpu?pid=123&seconds=1");
  CHECK(status_of(answer) == 200);
  CHECK(json::parse(body_of(answer))["warnings"].dump().find("It took long.") != std::string::npos);
  REQUIRE(sources.requests.size() == 1);
  CHECK(sources.requests[0].processes == std::vector<std::int32_t>{123});
  CHECK(sources.requests[0].length_ns == kNsPerSecond);
  CHECK(sources.cancelled.empty());
  CHECK(status_of(get(*server, "/off_cpu?pid=123&seconds=1")) == 409);
  CHECK(status_of(get(*server, "/off_cpu?pid=123&seconds=1", "", "HEAD")) == 409);
  CHECK(status_of(get(*server, "/off_cpu?pid=124")) == 404);
  CHECK(status_of(get(*server, "/off_cpu")) == 400);
  CHECK(sources.requests.size() == 2);
}

TEST_CASE("a measurement ends when the client that waits for it has gone") {
  MeasuringSources sources;
  sources.running_ = {{123, ::getuid()}};
  const auto server = start(sources);
  {
    RawClient client(server->port());
    client.send("GET /off_cpu?pid=123&seconds=60 HTTP/1.1\r\n" + host_of(*server) + "\r\n");
    const auto has_begun = [&] {
      const std::lock_guard guard(sources.mutex);
      return !sources.requests.empty();
    };
    while (!has_begun()) std::this_thread::yield();
  }
  const auto has_ended = [&] {
    const std::lock_guard guard(sources.mutex);
    return !sources.cancelled.empty();
  };
  const auto limit = Clock::now() + std::chrono::seconds(30);
  while (!has_ended() && Clock::now() < limit) std::this_thread::yield();
  REQUIRE(sources.cancelled.size() == 1);
  CHECK(sources.cancelled[0] == sources.requests[0].asked);
}

TEST_CASE("idle, slow and silent clients hold no thread") {
  Fixture fixture(1);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(std::make_unique<RawClient>(fixture.server->port()));
    if (i % 3 == 0) clients.back()->send("GET /version HTTP/1.1\r\n" + host_of(*fixture.server) + "\r\n").answer();
    if (i % 3 == 1) clients.back()->send("GET /version HT");
  }
  const auto start = Clock::now();
  CHECK(status_of(get(*fixture.server, "/healthz")) == 200);
  // Before the first of their limits.
  CHECK(Clock::now() - start < std::chrono::seconds(4));
}

TEST_CASE("monitoring requests are answered while all threads are busy") {
  Fixture fixture(0);
  RawClient waiting(fixture.server->port());
  waiting.send("GET /profile HTTP/1.1\r\nHost: x\r\n\r\n");
  for (const std::string path : {"/healthz", "/readyz?verbose", "/metrics", "/version"}) {
    INFO(path);
    CHECK(get(*fixture.server, path).starts_with("HTTP/1.1 "));
  }
  CHECK_FALSE(waiting.hears(std::chrono::milliseconds(0)));
}

/// Blocks readers of its samples until the test releases them.
class HeldSources : public FakeSources {
 public:
  [[nodiscard]] store::Snapshot await_snapshot() const override {
    ++looks_;
    looked_.release();
    go_.acquire();
    go_.release();
    return FakeSources::await_snapshot();
  }
  void wait_for_a_look() const { looked_.acquire(); }
  void let_go() const { go_.release(); }
  [[nodiscard]] int looks() const { return looks_; }

 private:
  mutable std::counting_semaphore<> looked_{0};
  mutable std::counting_semaphore<> go_{0};
  mutable std::atomic<int> looks_{0};
};

TEST_CASE(
    "clients who ask the same at once share one answer, however many threads there are, and nobody else gets it") {
  const std::size_t threads = GENERATE(1U, 4U);
  HeldSources sources;
  sources.add_process({123, 4567}, "worker");
  sources.add_samples({123, 4567}, "worker", {"main"}, 7);
  auto server = start(sources, threads);
  const auto request = [&](const std::string& target, const std::string& more = "") {
    return "GET " + target + " HTTP/1.1\r\n" + host_of(*server) + more + "Connection: close\r\n\r\n";
  };
  const std::string question = request("/profile?pid=123");
  RawClient first(server->port());
  first.send(question);
  sources.wait_for_a_look();  // its answer was decided before the others asked
  std::vector<RawClient> same;
  for (int i = 0; i < 10; ++i) {
    same.emplace_back(server->port());
    same.back().send(question);
  }
  RawClient other(server->port());
  other.send(request("/profile?pid=123&format=folded"));
  RawClient packed(server->port());
  packed.send(request("/profile?pid=123", "Accept: text/plain\r\n"));
  // The gate serves earlier requests first.
  CHECK(occurrences(get(*server, "/metrics"), "\nflamed_http_connections_total 14\n") == 1);
  sources.let_go();

  const std::string answer = first.rest();
  CHECK(json::parse(body_of(answer))["value"] == 7);
  for (RawClient& client : same) CHECK(body_of(client.rest()) == body_of(answer));
  CHECK(body_of(other.rest()) == "main 7\n");
  CHECK(body_of(packed.rest()) == "main 7\n");
  CHECK(sources.looks() == 3);
  const std::string metrics = get(*server, "/metrics");
  CHECK(occurrences(metrics, "\nflamed_http_shared_answers_total 10\n") == 1);
  CHECK(occurrences(metrics, "\nflamed_http_requests_total{code=\"2xx\"} 14\n") == 1);
}

TEST_CASE("an answer is reused until something is stored or a second has passed, on any kind of connection") {
  HeldSources sources;
  sources.let_go();
  sources.add_process({123, 4567}, "worker");
  sources.add_samples({123, 4567}, "worker", {"main"}, 7);
  auto server = start(sources);
  const std::string first = get(*server, "/profile?pid=123&format=folded");
  CHECK(body_of(first) == "main 7\n");
  CHECK(occurrences(first, "\r\nCache-Control: no-store\r\n") == 1);
  CHECK(occurrences(first, "\r\nConnection: close\r\n") == 1);
  CHECK(get(*server, "/profile?pid=123&format=folded") == first);
  RawClient client(server->port());
  const std::string kept =
      client.send("GET /profile?pid=123&format=folded HTTP/1.1\r\n" + host_of(*server) + "\r\n").answer();
  CHECK(body_of(kept) == "main 7\n");
  CHECK(occurrences(kept, "\r\nConnection: close\r\n") == 0);
  const std::string head = get(*server, "/profile?pid=123&format=folded", "", "HEAD");
  CHECK(head == first.substr(0, first.find("\r\n\r\n") + 4));
  CHECK(sources.looks() == 1);

  sources.add_samples({123, 4567}, "worker", {"main"}, 1);
  CHECK(body_of(get(*server, "/profile?pid=123&format=folded")) == "main 8\n");
  CHECK(sources.looks() == 2);
  sources.clock_.advance_ns(kNsPerSecond + 1);
  CHECK(body_of(get(*server, "/profile?pid=123&format=folded")) == "main 8\n");
  CHECK(sources.looks() == 3);
  // An answer with an entity tag is compared with the store each time.
  const std::string known = "If-None-Match: \"x\"\r\n";
  CHECK(status_of(get(*server, "/profile?pid=123&format=folded", known)) == 200);
  CHECK(sources.looks() == 4);
}

TEST_CASE("a client that closes its connection does not cost other waiting clients the answer") {
  HeldSources sources;
  sources.add_process({123, 4567}, "worker");
  sources.add_samples({123, 4567}, "worker", {"main"}, 7);
  auto server = start(sources, 2);
  const std::string question =
      "GET /profile?pid=123&format=folded HTTP/1.1\r\n" + host_of(*server) + "Connection: close\r\n\r\n";
  auto first = std::make_unique<RawClient>(server->port());
  first->send(question);
  sources.wait_for_a_look();
  RawClient second(server->port());
  second.send(question);
  first.reset();
  sources.let_go();
  CHECK(body_of(second.rest()) == "main 7\n");
  CHECK(sources.looks() == 1);
}

TEST_CASE("with room for one answer at a time, all clients that read get theirs whole") {
  Fixture fixture;
  ServerOptions options = options_for({"127.0.0.1", 0}, 4);
  options.unsent_bytes = 2;
  auto server = Server::listen(std::move(options), fixture.sources);
  REQUIRE(server.ok());
  std::vector<RawClient> clients;
  for (int i = 0; i < 32; ++i) {
    clients.emplace_back((*server)->port());
    // All requests differ, or they would share an answer.
    clients.back().send("GET /profile?pid=123&max_nodes=" + std::to_string(1000 + i) + " HTTP/1.1\r\n" +
                        host_of(**server) + "Connection: close\r\n\r\n");
  }
  for (RawClient& client : clients) {
    const std::string answer = client.rest();
    CHECK(status_of(answer) == 200);
    CHECK(json::parse(body_of(answer))["value"] == 100);
  }
}

TEST_CASE("where the kernel does not identify callers, the problem says so, with the remedy") {
  FakeSources sources;
  sources.add_process({123, 4567}, "worker");
  sources.add_samples({123, 4567}, "worker", {"main"}, 1);
  ServerOptions options = options_for({"127.0.0.1", 0});
  options.open_owners = []() -> Result<std::unique_ptr<SocketOwners>> { return Error("netlink sock_diag: refused"); };
  auto server = Server::listen(std::move(options), sources);
  REQUIRE(server.ok());
  REQUIRE_FALSE((*server)->peers().ok());
  CHECK(status_of(get(**server, "/profile?pid=123")) == 403);

  const std::string health = get(**server, "/healthz");
  CHECK(status_of(health) == 200);
  const json component = json::parse(body_of(health))["components"].back();
  CHECK(component["name"] == "peers");
  CHECK(component["ok"] == false);
  CHECK(component["detail"] == (*server)->peers().error().message());
  CHECK(occurrences(component["detail"], "netlink sock_diag: refused; ") == 1);
  CHECK(occurrences(component["detail"], "RestrictAddressFamilies=") == 1);
  CHECK(occurrences(get(**server, "/metrics"), "\nflamed_http_unknown_peers_total 3\n") == 1);
}

TEST_CASE("a refusal lists the allowed methods, or when to retry") {
  Fixture fixture(1);
  CHECK(occurrences(get(*fixture.server, "/profile", "", "POST"), "Allow: GET, HEAD\r\n") == 1);

  ServerOptions options = options_for({"127.0.0.1", 0});
  options.queued_requests = 0;
  const auto busy = Server::listen(std::move(options), fixture.sources);
  REQUIRE(busy.ok());
  const std::string answer = get(**busy, "/version");
  CHECK(status_of(answer) == 503);
  CHECK(json::parse(body_of(answer))["type"] == "urn:flamed:problem:too-many-requests");
  CHECK(occurrences(answer, "Retry-After: 1\r\n") == 1);
  CHECK(occurrences(answer, "Connection: close\r\n") == 1);
}

TEST_CASE("a server reports once when it has been idle for a while after an answer") {
  FakeSources sources;
  std::atomic<int> told{0};
  ServerOptions options = options_for({"127.0.0.1", 0}, 3);
  options.quiet_after = std::chrono::milliseconds(1);
  options.when_quiet = [&told] { ++told; };
  const auto server = Server::listen(std::move(options), sources);
  REQUIRE(server.ok());
  CHECK(status_of(get(**server, "/healthz")) == 200);
  CHECK(told == 0);
  for (int answers = 1; answers <= 2; ++answers) {
    CHECK(status_of(get(**server, "/profile")) == 200);
    const auto end = Clock::now() + std::chrono::seconds(60);
    while (told < answers && Clock::now() < end) std::this_thread::yield();
    CHECK(told == answers);
  }
}

TEST_CASE("a server listens on all of its addresses, and on sockets from a service manager") {
  FakeSources sources;
  const test::TemporaryDirectory directory;
  const std::string path = directory.path("flamed.sock");
  Fd inherited(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(inherited.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(inherited.get(), 8) == 0);

  ServerOptions options = options_for({"", 0, path});
  options.inherited.push_back(std::move(inherited));
  const auto server = Server::listen(std::move(options), sources);
  REQUIRE(server.ok());
  CHECK((*server)->addresses() == "http://127.0.0.1:" + std::to_string((*server)->port()) + "/, unix:" + path);
  CHECK(status_of(get(**server, "/version")) == 200);
  RawClient local(path);
  CHECK(status_of(local.send("GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").rest()) == 200);
}

TEST_CASE("clients are served when file descriptors have large numbers") {
  // select() cannot handle descriptors from 1,024 on.
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

TEST_CASE("an error about a port in use says how to see its owner") {
  Fixture fixture;
  const std::uint16_t port = fixture.server->port();
  const auto second = Server::listen(options_for({"127.0.0.1", port}), fixture.sources);
  REQUIRE_FALSE(second.ok());
  const std::string& message = second.error().message();
  INFO(message);
  CHECK(message.starts_with("cannot listen on 127.0.0.1:" + std::to_string(port) +
                            ": it is taken ('ss -ltnp sport = :" + std::to_string(port) + "'"));
  CHECK(message.ends_with("choose another with --listen 127.0.0.1:" + std::to_string(port + 1)));
  CHECK(second.error().code() == EADDRINUSE);
}

TEST_CASE("an address that is not this host's is refused with a remedy") {
  FakeSources sources;
  for (const std::string host : {"192.0.2.1", "no such host"}) {
    const auto server = Server::listen(options_for({host, 0}), sources);
    REQUIRE_FALSE(server.ok());
    CHECK(server.error().message().find(host) != std::string::npos);
  }
}

TEST_CASE("a port can be used again as soon as its server has ended") {
  FakeSources sources;
  auto first = start(sources);
  const std::uint16_t port = first->port();
  CHECK(status_of(get(*first, "/version")) == 200);
  first.reset();
  const auto second = Server::listen(options_for({"127.0.0.1", port}), sources);
  CHECK(second.ok());
}

TEST_CASE("a server ends without waiting for its clients, whatever they do") {
  FakeSources sources;
  for (int i = 0; i < 20'000; ++i) sources.add_samples({1, 1}, "worker", {"main", "f" + std::to_string(i)}, 1);
  auto server = start(sources, 4);
  RawClient silent(server->port());
  RawClient half(server->port());
  half.send("GET / HTT");
  RawClient not_reading(server->port());
  for (int i = 0; i < 20; ++i) not_reading.send("GET /profile HTTP/1.1\r\n" + host_of(*server) + "\r\n");
  RawClient idle(server->port());
  CHECK(status_of(idle.send("GET /version HTTP/1.1\r\n" + host_of(*server) + "\r\n").answer()) == 200);
  const auto start = Clock::now();
  server.reset();
  // Before the first of their limits.
  CHECK(Clock::now() - start < std::chrono::seconds(4));
}

}  // namespace
}  // namespace flamed::api
