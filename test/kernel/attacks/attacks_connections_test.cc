// SPDX-License-Identifier: Apache-2.0
//
// Attacks by connections: users open as many as they may, and keep all of them busy.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/handle.h"
#include "test/catch.h"
#include "test/kernel/attacks/attack.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr unsigned kFirstMallory = 64501;
constexpr unsigned kHonest = 64401;

/// What the attacking connections do.
enum class Behaviour : std::uint8_t {
  kSaysNothing,
  kSendsHalfARequest,
  kDoesNotRead,  ///< the answer that it requested
  kWaits,        ///< for samples of the next minutes
};

Fd connect_as(unsigned user, std::uint16_t port, Behaviour behaviour) {
  REQUIRE(::seteuid(user) == 0);
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int small = 2048;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  REQUIRE(::seteuid(0) == 0);
  REQUIRE(connected);
  std::string text;
  const std::string host = " HTTP/1.1\r\nHost: localhost:" + std::to_string(port) + "\r\n";
  if (behaviour == Behaviour::kSendsHalfARequest) text = "GET /profile" + host;
  if (behaviour == Behaviour::kDoesNotRead) text = "GET /openapi.json" + host + "\r\n";
  if (behaviour == Behaviour::kWaits) text = "GET /profile?seconds=200" + host + "\r\n";
  static_cast<void>(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL));
  return socket;
}

struct Asked {
  int status = 0;
  double seconds = 0;
};

Asked ask_as(unsigned user, const RunningDaemon& daemon, const std::string& target) {
  const auto begun = std::chrono::steady_clock::now();
  ChildProcess client(
      as_user(user, {"curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}\n", "--max-time", "20",
                     "http://127.0.0.1:" + std::to_string(daemon.port()) + target}));
  const auto line = client.read_line(seconds(25));
  return {line ? std::stoi(*line) : 0, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()};
}

TEST_CASE("users with as many connections as they may open keep out neither root nor others nor probes") {
  RunningDaemon daemon;
  // 5 x 125 exceed the room; with 20 users each has fewer.
  for (const unsigned users : {5U, 20U}) {
    for (const Behaviour behaviour :
         {Behaviour::kSaysNothing, Behaviour::kSendsHalfARequest, Behaviour::kDoesNotRead, Behaviour::kWaits}) {
      CAPTURE(users, static_cast<int>(behaviour));
      std::vector<Fd> sockets;
      for (unsigned i = 0; i < 625; ++i) {
        sockets.push_back(connect_as(kFirstMallory + i % users, daemon.port(), behaviour));
      }
      for (const unsigned user : {0U, kHonest}) {
        for (const char* target : {"/profile?format=folded&comm=nobody", "/healthz", "/metrics"}) {
          CAPTURE(user, target);
          const Asked asked = ask_as(user, daemon, target);
          CHECK(asked.status == 200);
          CHECK(asked.seconds < 3 * patience());
        }
      }
    }
  }
}

}  // namespace
}  // namespace flamed::test
