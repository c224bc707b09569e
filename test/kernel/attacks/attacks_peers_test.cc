// SPDX-License-Identifier: Apache-2.0
//
// Attacks on the identity of callers: a user tries to be taken for root.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "base/handle.h"
#include "test/catch.h"
#include "test/kernel/attacks/attack.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/support/same_ends.h"

namespace flamed::test {
namespace {

constexpr uid_t kMallory = 64107;

/// A connection of the user, bound to `lo`.
Fd connect_as(uid_t user, std::uint16_t port) {
  REQUIRE(::seteuid(user) == 0);
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  bind_to_loopback(socket);
  const sockaddr_in address = loopback(port);
  const bool connected = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  REQUIRE(::seteuid(0) == 0);
  REQUIRE(connected);
  return socket;
}

std::uint16_t port_of(const Fd& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

std::string ask(const Fd& socket, std::uint16_t port, const std::string& target) {
  const std::string request =
      "GET " + target + " HTTP/1.1\r\nHost: localhost:" + std::to_string(port) + "\r\nConnection: close\r\n\r\n";
  REQUIRE(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size()));
  std::string answer;
  char piece[4096];
  pollfd readable{socket.get(), POLLIN, 0};
  while (::poll(&readable, 1, 10'000 * patience()) == 1) {
    const ssize_t count = ::recv(socket.get(), piece, sizeof piece, 0);
    if (count <= 0) break;
    answer.append(piece, static_cast<std::size_t>(count));
  }
  return answer;
}

TEST_CASE("a user whose connection has the same ends as a connecting socket of root is not taken for root") {
  RunningDaemon daemon;
  ChildProcess roots({victim("known_chain")});
  REQUIRE(has_samples(daemon, roots.pid(), 20));
  const std::string mark = "\"pid\":" + std::to_string(roots.pid());
  REQUIRE(daemon.get("/processes").body.find(mark) != std::string::npos);

  const int tries = attack_tries(5);
  for (int i = 0; i < tries; ++i) {
    CAPTURE(i);
    // The daemon looks at the connection while root's socket exists, by chance or because it is busy.
    daemon.process().signal(SIGSTOP);
    REQUIRE(is_stopped(daemon.process().pid()));
    const Fd mallory = connect_as(kMallory, daemon.port());
    Fd root = connect_in_vain(port_of(mallory), daemon.port());
    daemon.process().signal(SIGCONT);
    REQUIRE(daemon.get("/healthz").status == 200);  // which came later, so the other one was accepted
    root.reset();                                   // or the answer would go there
    const std::string answer = ask(mallory, daemon.port(), "/processes");
    INFO(answer.substr(0, 400));
    CHECK(answer.starts_with("HTTP/1.1 403 "));
    CHECK(answer.find(mark) == std::string::npos);
    CHECK(answer.find("known_chain") == std::string::npos);
  }
}

}  // namespace
}  // namespace flamed::test
