// SPDX-License-Identifier: Apache-2.0
#include "api/socket/accept_gate.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/unit/api/socket/raw_client.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::api {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const std::string kRequest = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n";

/// Collects requests, which the test answers.
class Desk final : public GateUser {
 public:
  bool take(GateRequest&& request) override {
    const std::lock_guard lock(mutex_);
    if (is_full) return false;
    requests_.push_back(std::move(request));
    changed_.notify_all();
    return true;
  }
  std::string refuse(const Problem& problem, bool is_head) override {
    return problem.kind + (is_head ? " to HEAD" : "");
  }

  std::optional<GateRequest> next(std::chrono::milliseconds patience = 10s) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return !requests_.empty(); })) return std::nullopt;
    GateRequest request = std::move(requests_.front());
    requests_.pop_front();
    return request;
  }

  std::atomic<bool> is_full{false};

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<GateRequest> requests_;
};

/// Names the next user of a list as the owner of each new connection to the port.
class ListedOwners final : public SocketOwners {
 public:
  /// `forgets`: no longer knows any owner.
  ListedOwners(std::uint16_t port, std::vector<std::optional<uid_t>> users, const std::atomic<bool>& forgets)
      : port_(port), users_(std::move(users)), forgets_(forgets) {}
  std::optional<uid_t> owner_of(const TcpEnds& ends) override {
    if (ends.server.port != port_) return ::getuid();  // flamed's own end
    if (forgets_) return std::nullopt;
    const auto [known, is_new] = by_client_.try_emplace(ends.client.port);
    if (is_new && next_ < users_.size()) known->second = users_[next_++];
    return known->second;
  }

 private:
  const std::uint16_t port_;
  std::vector<std::optional<uid_t>> users_;
  const std::atomic<bool>& forgets_;
  std::size_t next_ = 0;
  std::map<std::uint16_t, std::optional<uid_t>> by_client_;
};

struct Fixture {
  explicit Fixture(const GateLimits& limits = {}, const std::vector<std::optional<uid_t>>& users = {}) {
    auto socket = ListeningSocket::open({"127.0.0.1", 0}, Reach::kThisHost);
    REQUIRE(socket.ok());
    port = socket->endpoint()->port;
    std::vector<ListeningSocket> listening;
    listening.push_back(std::move(*socket));
    peers = std::make_unique<PeerLookup>([this, users]() -> Result<std::unique_ptr<SocketOwners>> {
      return std::unique_ptr<SocketOwners>(std::make_unique<ListedOwners>(port, users, owners_forget));
    });
    auto opened = AcceptGate::open(std::move(listening), limits, *peers, desk);
    REQUIRE(opened.ok());
    gate = std::move(*opened);
  }

  [[nodiscard]] RawClient client() const { return RawClient(port); }

  /// A client whose request was handed out.
  RawClient asking(GateRequest& request) {
    RawClient client(port);
    client.send(kRequest);
    auto taken = desk.next();
    REQUIRE(taken.has_value());
    request = std::move(*taken);
    return client;
  }

  /// Waits until the gate has accepted this many connections. It accepts some time after clients connect.
  void wait_for_accepted(std::uint64_t count) const {
    wait_until([&](const AcceptGate::Figures& figures) { return figures.accepted == count; });
  }

  /// The gate runs in a thread of its own and updates its counters one after the other.
  void wait_until(const std::function<bool(const AcceptGate::Figures&)>& holds) const {
    const auto end = Clock::now() + 10s;
    while (!holds(gate->figures()) && Clock::now() < end) std::this_thread::yield();
    REQUIRE(holds(gate->figures()));
  }

  Desk desk;
  std::atomic<bool> owners_forget{false};
  std::uint16_t port = 0;
  std::unique_ptr<PeerLookup> peers;
  std::unique_ptr<AcceptGate> gate;
};

GateLimits limits_with(const std::function<void(GateLimits&)>& change) {
  GateLimits limits;
  change(limits);
  return limits;
}

TEST_CASE("a request is handed out whole, with its caller, and the answer goes back unchanged") {
  Fixture fixture({}, {1000});
  RawClient client = fixture.client();
  client.send(kRequest);
  const auto request = fixture.desk.next();
  REQUIRE(request.has_value());
  CHECK(request->head == kRequest);
  CHECK(request->peer.transport == Peer::Transport::kLoopback);
  CHECK(request->peer.uid == 1000U);
  CHECK_FALSE(request->asked.has_value());
  CHECK_FALSE(request->last);
  fixture.gate->reply({request->client, "answer"});
  CHECK(client.rest() == "answer");
}

TEST_CASE("a caller that is unknown at the first request stays unknown, and later requests are not looked up") {
  Fixture fixture({}, {1000, 1001});
  RawClient doubtful = fixture.client();
  fixture.wait_until([](const AcceptGate::Figures& figures) { return figures.open == 1; });  // looked up by then
  fixture.owners_forget = true;
  doubtful.send(kRequest);
  const auto first = fixture.desk.next();
  REQUIRE(first.has_value());
  CHECK(first->peer == Peer{Peer::Transport::kLoopback, std::nullopt});
  fixture.owners_forget = false;
  fixture.gate->reply({first->client, "a", true});
  CHECK(doubtful.receive(1) == "a");
  doubtful.send(kRequest);
  CHECK_FALSE(fixture.desk.next()->peer.uid.has_value());

  GateRequest request;
  RawClient known = fixture.asking(request);
  CHECK(request.peer.uid == 1001U);
  fixture.gate->reply({request.client, "a", true});
  CHECK(known.receive(1) == "a");
  fixture.owners_forget = true;
  known.send(kRequest);
  CHECK(fixture.desk.next()->peer.uid == 1001U);
}

TEST_CASE("a request that arrives in pieces takes no place before it is complete") {
  Fixture fixture;
  RawClient client = fixture.client();
  client.send(kRequest.substr(0, 20));
  CHECK_FALSE(fixture.desk.next(20ms).has_value());
  client.send(kRequest.substr(20));
  CHECK(fixture.desk.next()->head == kRequest);
}

TEST_CASE("a connection carries several requests, also when they are sent at once") {
  Fixture fixture;
  RawClient client = fixture.client();
  client.send("GET /1 HTTP/1.0\r\n\r\nGET /2 HTTP/1.0\r\n\r\nGET /3 HTTP/1.0\r\n\r\n");
  for (const std::string path : {"/1", "/2", "/3"}) {
    const auto request = fixture.desk.next();
    REQUIRE(request.has_value());
    CHECK(request->head == "GET " + path + " HTTP/1.0\r\n\r\n");
    // One at a time: answers come in the order of the requests.
    CHECK_FALSE(fixture.desk.next(10ms).has_value());
    fixture.gate->reply({request->client, path, path != "/3"});
  }
  CHECK(client.rest() == "/1/2/3");
}

TEST_CASE("a connection is closed after very many requests") {
  Fixture fixture;
  RawClient client = fixture.client();
  int count = 0;
  for (bool last = false; !last; ++count) {
    client.send(kRequest);
    const auto request = fixture.desk.next();
    REQUIRE(request.has_value());
    last = request->last;
    fixture.gate->reply({request->client, "x", !last});
    CHECK(client.receive(1) == "x");
  }
  CHECK(count == 1000);
  CHECK(client.is_hung_up());
}

TEST_CASE("a request that does not arrive in time is refused") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.connection.receive = 30ms; }));
  RawClient client = fixture.client();
  client.send("HEAD / HTTP/1.1\r\nHos");
  CHECK(client.rest() == "request-timeout to HEAD");
  CHECK(fixture.gate->figures().too_slow == 1);
}

TEST_CASE("a client that sends byte by byte gets no more time than another") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.connection.receive = 100ms; }));
  RawClient client = fixture.client();
  const auto start = Clock::now();
  while (!client.hears(5ms)) client.send("x");
  CHECK(client.rest() == "request-timeout");
  CHECK(Clock::now() - start < 5s);
}

TEST_CASE("an idle connection is closed without an answer, before and after a request") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.connection.idle = 1s; }));
  CHECK(fixture.client().is_hung_up());
  RawClient client = fixture.client();
  client.send(kRequest);
  const auto request = fixture.desk.next();
  REQUIRE(request.has_value());
  fixture.gate->reply({request->client, "x", true});
  CHECK(client.rest() == "x");
  CHECK(fixture.gate->figures().too_slow == 0);
}

TEST_CASE("an answer may take longer to make than any limit on the client") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.connection = {1s, 1s, 1s, 1s, 1s}; }));
  RawClient client = fixture.client();
  client.send(kRequest);
  const auto request = fixture.desk.next();
  REQUIRE(request.has_value());
  CHECK_FALSE(client.hears(1200ms));
  fixture.gate->reply({request->client, "late"});
  CHECK(client.rest() == "late");
}

TEST_CASE("a malformed request is refused and nothing after it is read") {
  Fixture fixture;
  CHECK(fixture.client().send("BREW\r\n").rest() == "bad-request");
  CHECK(fixture.client().send("GET /" + std::string(100'000, 'a')).rest() == "uri-too-long");
  CHECK(fixture.client().send("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'a')).rest() == "headers-too-large");
  CHECK(fixture.client().send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + kRequest).rest() ==
        "body-refused");
  CHECK_FALSE(fixture.desk.next(0ms).has_value());
}

TEST_CASE("the connection that is idle longest makes room for another client of its user") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.clients_per_user = 2; }), {1, 2, 1, 1});
  RawClient first = fixture.client();
  RawClient other_user = fixture.client();
  RawClient second = fixture.client();
  fixture.wait_for_accepted(3);
  RawClient third = fixture.client();
  CHECK(first.is_hung_up());
  for (RawClient* client : {&other_user, &second, &third}) {
    client->send(kRequest);
    const auto request = fixture.desk.next();
    REQUIRE(request.has_value());
    fixture.gate->reply({request->client, "x"});
    CHECK(client->rest() == "x");
  }
  CHECK(fixture.gate->figures().made_room == 1);
}

TEST_CASE("when all places are taken, the user with the most connections makes room") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.clients = 4; }), {7, 1, 1, 1, 2});
  RawClient modest = fixture.client();  // idle longest, but alone
  RawClient greedy = fixture.client();
  RawClient greedy_too = fixture.client();
  RawClient greedy_as_well = fixture.client();
  fixture.wait_for_accepted(4);
  RawClient newcomer = fixture.client();
  CHECK(greedy.is_hung_up());
  CHECK_FALSE(modest.hears(0ms));
  CHECK_FALSE(newcomer.hears(0ms));
}

TEST_CASE("the user with the most connections makes room also when all are busy, until all users have equally many") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.clients = 4; }), {7, 1, 1, 1, 2, 3, 4});
  GateRequest modest, first, second, third;
  RawClient one = fixture.asking(modest);
  RawClient two = fixture.asking(first);
  RawClient three = fixture.asking(second);
  RawClient four = fixture.asking(third);
  RawClient newcomer = fixture.client();
  CHECK(two.is_hung_up());
  RawClient another = fixture.client();
  CHECK(three.is_hung_up());
  fixture.wait_for_accepted(6);
  CHECK(fixture.gate->figures().made_room == 2);
  // Each of the four users has one: the silent one is closed first, and none whose answer is being made.
  newcomer.send(kRequest);
  REQUIRE(fixture.desk.next().has_value());
  RawClient last = fixture.client();
  CHECK(another.is_hung_up());
  for (const GateRequest* request : {&modest, &third}) fixture.gate->reply({request->client, "x"});
  CHECK(one.rest() == "x");
  CHECK(four.rest() == "x");
  // An answer for a closed connection is dropped.
  fixture.gate->reply({first.client, "x"});
}

TEST_CASE("of users with one connection each, one that does not read its answer makes room for a user without any") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.clients = 3; }), {1, 2, 3, 4, 4, 5});
  GateRequest unread, made, waited;
  RawClient one = fixture.asking(made);
  RawClient two = fixture.asking(unread);
  RawClient three = fixture.asking(waited);
  fixture.gate->reply({unread.client, std::string(64U << 20, 'x'), true});
  CHECK(two.receive(1) == "x");
  fixture.gate->reply({waited.client, {}, false, {}, WallTime{17}, Clock::now() + 60s});
  GateRequest newcomers;
  RawClient newcomer = fixture.asking(newcomers);
  CHECK(fixture.gate->figures().made_room == 1);
  // For a second client of the same user, and for any later one, no user with more connections has one to spare.
  CHECK(fixture.client().rest() == "too-many-clients");
  CHECK(fixture.client().rest() == "too-many-clients");
  for (const GateRequest* request : {&made, &newcomers}) fixture.gate->reply({request->client, "x"});
  CHECK(one.rest() == "x");
  CHECK(newcomer.rest() == "x");
  CHECK_FALSE(three.hears(0ms));
}

TEST_CASE("clients that are only answered that there is no place take none") {
  const GateLimits limits = limits_with([](GateLimits& change) {
    change.clients = 2;
    change.connection.linger = 60s;
  });
  Fixture fixture(limits, {1, 2, 3, 3, 3, 4});
  GateRequest first, second, third;
  RawClient one = fixture.asking(first);
  RawClient two = fixture.asking(second);
  std::vector<RawClient> refused;
  for (int i = 0; i < 3; ++i) refused.push_back(fixture.client());
  fixture.wait_until([](const AcceptGate::Figures& figures) { return figures.turned_away == 3; });
  fixture.gate->reply({first.client, "x"});
  CHECK(one.rest() == "x");
  RawClient newcomer = fixture.asking(third);
  CHECK(fixture.gate->figures().made_room == 0);
}

TEST_CASE("the places reserved for root stay root's while it is idle, and reduce no one else's places") {
  constexpr std::size_t kPlaces = 34;  // two for others
  Fixture fixture(limits_with([](GateLimits& limits) { limits.clients = kPlaces; }), {0, 0, 1, 2, 3});
  RawClient idle = fixture.client();
  RawClient idle_too = fixture.client();
  fixture.wait_for_accepted(2);
  GateRequest first, second;
  RawClient one = fixture.asking(first);
  RawClient two = fixture.asking(second);
  CHECK(fixture.client().rest() == "too-many-clients");
  CHECK_FALSE(idle.hears(0ms));
  CHECK_FALSE(idle_too.hears(0ms));
}

TEST_CASE("some places are reserved for root, however many other clients there are") {
  constexpr std::size_t kPlaces = 40;
  std::vector<std::optional<uid_t>> users;
  for (uid_t user = 1000; user < 1000 + kPlaces; ++user) users.emplace_back(user);
  users.emplace_back(0);
  Fixture fixture(limits_with([](GateLimits& limits) { limits.clients = kPlaces; }), users);
  std::vector<RawClient> others;
  std::vector<GateRequest> requests(kPlaces);
  // One each, none of them idle: 8 have a place.
  for (std::size_t i = 0; i < 8; ++i) others.push_back(fixture.asking(requests[i]));
  for (std::size_t i = 8; i < kPlaces; ++i) CHECK(fixture.client().rest() == "too-many-clients");
  GateRequest request;
  RawClient root = fixture.asking(request);
  CHECK(request.peer.uid == uid_t{0});
  fixture.gate->reply({request.client, "x"});
  CHECK(root.rest() == "x");
  CHECK(fixture.gate->figures().made_room == 0);
}

TEST_CASE("unknown users count as one user") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.clients_per_user = 1; }));
  RawClient first = fixture.client();
  fixture.wait_for_accepted(1);
  RawClient second = fixture.client();
  CHECK(first.is_hung_up());
}

TEST_CASE("clients that wait for their answers do not make room: further clients are refused") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.clients_per_user = 2; }));
  GateRequest first, second;
  RawClient one = fixture.asking(first);
  RawClient two = fixture.asking(second);
  CHECK(fixture.client().rest() == "too-many-clients");
  fixture.gate->reply({first.client, "x"});
  fixture.gate->reply({second.client, "x"});
  CHECK(one.rest() == "x");
  CHECK(two.rest() == "x");
  GateRequest third;
  RawClient three = fixture.asking(third);
  CHECK(fixture.gate->figures().turned_away == 1);
}

TEST_CASE("a flood of clients without a place is not answered without end") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.clients_per_user = limits.clients = 1; }));
  GateRequest request;
  RawClient asking = fixture.asking(request);
  std::vector<RawClient> flood;
  for (int i = 0; i < 100; ++i) flood.push_back(fixture.client());
  fixture.wait_for_accepted(101);
  CHECK(fixture.gate->figures().open <= 33);
  // A client is refused some time after it was accepted.
  fixture.wait_until([](const AcceptGate::Figures& figures) { return figures.turned_away == 100; });
}

TEST_CASE("a request for which there is no place is refused") {
  Fixture fixture;
  fixture.desk.is_full = true;
  CHECK(fixture.client().send(kRequest).rest() == "too-many-requests");
  fixture.desk.is_full = false;
  GateRequest request;
  fixture.asking(request);
}

TEST_CASE("large bodies of all clients together have a bound, which small ones do not need") {
  Fixture fixture(limits_with([](GateLimits& limits) {
    limits.large_bodies = 100'000;
    limits.connection.body = [](std::string_view, std::string_view) { return std::size_t{1} << 20; };
  }));
  const auto post = [](std::size_t bytes) {
    return "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
  };
  RawClient first = fixture.client();
  first.send(post(60'000) + std::string(59'999, 'x'));
  // Its socket was ready before this one, so the gate has read the announcement first.
  fixture.client().send(post(4096) + std::string(4096, 'x'));
  CHECK(fixture.desk.next().value().body.size() == 4096);
  CHECK(fixture.client().send(post(60'000) + std::string(60'000, 'x')).rest() == "too-many-requests");

  first.send("x");
  auto request = fixture.desk.next();
  REQUIRE(request.has_value());
  CHECK(request->body.size() == 60'000);
  // Its memory is free once it has its answer.
  fixture.gate->reply({request->client, std::string("answer"), false, {}, {}, {}});
  CHECK(first.rest() == "answer");
  RawClient third = fixture.client();
  third.send(post(90'000) + std::string(90'000, 'x'));
  CHECK(fixture.desk.next().value().body.size() == 90'000);
}

TEST_CASE("a client that does not read delays no other client, and is closed soon") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.connection.stall = 200ms; }));
  RawClient slow(fixture.port, 4096);
  slow.send(kRequest);
  const auto request = fixture.desk.next();
  REQUIRE(request.has_value());
  fixture.gate->reply({request->client, std::string(16U << 20, 'x')});
  GateRequest other;
  RawClient quick = fixture.asking(other);
  fixture.gate->reply({other.client, "x"});
  CHECK(quick.rest() == "x");
  const auto end = Clock::now() + 10s;
  while (fixture.gate->figures().too_slow == 0 && Clock::now() < end) std::this_thread::yield();
  CHECK(slow.rest().size() < (16U << 20));
  CHECK(fixture.gate->figures().open == 0);
}

TEST_CASE("a client that reads in small pieces gets a large answer whole") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.connection.stall = 5s; }));
  RawClient client(fixture.port, 4096);
  client.send(kRequest);
  const auto request = fixture.desk.next();
  REQUIRE(request.has_value());
  std::string answer;
  while (answer.size() < 4U << 20) answer += std::to_string(answer.size()) + "\n";
  fixture.gate->reply({request->client, std::string(answer)});
  CHECK(client.rest() == answer);
}

TEST_CASE("an answer has a deadline, however steadily the client reads") {
  Fixture fixture(limits_with([](GateLimits& limits) { limits.connection.transmit = 200ms; }));
  RawClient client(fixture.port, 4096);
  client.send(kRequest);
  const auto request = fixture.desk.next();
  REQUIRE(request.has_value());
  fixture.gate->reply({request->client, std::string(64U << 20, 'x')});
  std::size_t received = 0;
  for (std::string piece = "x"; !piece.empty(); received += piece.size()) {
    piece = client.receive(1024);
    static_cast<void>(client.hears(1ms));
    std::this_thread::sleep_for(1ms);
  }
  CHECK(received < (64U << 20));
}

TEST_CASE("a waiting request is handed out again when it is due, with the time when it arrived") {
  Fixture fixture;
  GateRequest request;
  RawClient client = fixture.asking(request);
  const auto due = Clock::now() + 50ms;
  fixture.gate->reply({request.client, {}, false, {}, WallTime{17}, due});
  const auto again = fixture.desk.next();
  REQUIRE(again.has_value());
  CHECK(Clock::now() >= due);
  CHECK(again->asked == WallTime{17});
  CHECK(again->head == kRequest);
  fixture.gate->reply({again->client, "x"});
  CHECK(client.rest() == "x");
}

TEST_CASE("an answer for a client that closed its connection is dropped") {
  Fixture fixture;
  GateRequest request;
  RawClient client = fixture.asking(request);
  client.hang_up();
  fixture.gate->reply({request.client, std::string(1U << 20, 'x'), true});
  fixture.gate->reply({request.client, "again", true});
  fixture.gate->reply({12345, "nobody", true});
  GateRequest other;
  fixture.asking(other);
}

TEST_CASE("clients get heads of their own and a shared body, whole and in order") {
  Fixture fixture;
  const std::string body(3U << 20, 'b');  // more than socket buffers hold
  const SharedBytes shared(body);
  GateRequest first_request;
  GateRequest second_request;
  RawClient first = fixture.asking(first_request);
  RawClient second = fixture.asking(second_request);
  fixture.gate->reply({first_request.client, "first", false, shared});
  fixture.gate->reply({second_request.client, std::string(2U << 20, 'h'), false, shared});
  CHECK(first.rest() == "first" + body);
  CHECK(second.rest() == std::string(2U << 20, 'h') + body);
}

TEST_CASE("the gate closes at once, whatever its clients do, and sends the answers that it has") {
  Fixture fixture;
  GateRequest request;
  RawClient answered = fixture.asking(request);
  RawClient silent = fixture.client();
  RawClient half = fixture.client();
  half.send("GET / HT");
  GateRequest unanswered;
  RawClient asking = fixture.asking(unanswered);
  const auto start = Clock::now();
  fixture.gate->reply({request.client, "last words", true});
  fixture.gate.reset();
  CHECK(Clock::now() - start < 1s);
  CHECK(answered.rest() == "last words");
  CHECK(asking.is_hung_up());
}

TEST_CASE("the gate accepts again once a file descriptor is free") {
  Fixture fixture;
  Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(fixture.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit none{0, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const int connected = ::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  const ssize_t sent = ::send(client.get(), kRequest.data(), kRequest.size(), 0);
  const bool taken = fixture.desk.next(20ms).has_value();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  REQUIRE(connected == 0);
  REQUIRE(sent > 0);
  CHECK_FALSE(taken);
  CHECK(fixture.desk.next().has_value());
}

TEST_CASE("clients of a Unix socket are served beside those of TCP") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path("gate.sock");
  std::vector<ListeningSocket> listening;
  for (const ListenAddress& address : {ListenAddress{"127.0.0.1", 0}, ListenAddress{"", 0, path}}) {
    auto socket = ListeningSocket::open(address, Reach::kThisHost);
    REQUIRE(socket.ok());
    listening.push_back(std::move(*socket));
  }
  Desk desk;
  PeerLookup peers;
  auto gate = AcceptGate::open(std::move(listening), {}, peers, desk);
  REQUIRE(gate.ok());
  RawClient client(path);
  client.send(kRequest);
  const auto request = desk.next();
  REQUIRE(request.has_value());
  CHECK(request->peer.transport == Peer::Transport::kUnix);
  CHECK(request->peer.uid == ::getuid());
  (*gate)->reply({request->client, "x"});
  CHECK(client.rest() == "x");
}

}  // namespace
}  // namespace flamed::api
