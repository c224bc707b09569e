// SPDX-License-Identifier: Apache-2.0
//
// The API and the page over a store with fixed content at a fixed time, for tests of the page in a browser.
//
//   fixture_server     listens on a free port of the loopback address, prints "http://127.0.0.1:PORT", runs until
//   SIGTERM. A line "go on SECONDS" on stdin lets time pass, and is answered by "gone on".
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "api/server/server.h"
#include "base/handle.h"
#include "test/web/fixture_history.h"

namespace flamed::api {
namespace {

void obey(std::string_view line, FixtureHistory& history) {
  constexpr std::string_view kGoOn = "go on ";
  int seconds = 0;
  if (!line.starts_with(kGoOn)) return;
  line.remove_prefix(kGoOn.size());
  std::from_chars(line.data(), line.data() + line.size(), seconds);
  history.go_on(seconds);
  std::puts("gone on");
  std::fflush(stdout);
}

/// Runs until SIGTERM, also if stdin ends before.
void listen_to_stdin(int signals, FixtureHistory& history) {
  std::string line;
  std::array<pollfd, 2> waits{{{signals, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
  while (::poll(waits.data(), waits.size(), -1) >= 0 && waits[0].revents == 0) {
    if (waits[1].revents == 0) continue;
    std::array<char, 256> bytes{};
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count <= 0) waits[1].fd = -1;
    for (ssize_t i = 0; i < count; ++i) {
      const char byte = bytes[static_cast<std::size_t>(i)];
      if (byte != '\n') {
        line += byte;
        continue;
      }
      obey(line, history);
      line.clear();
    }
  }
}

int run() {
  // Before the server's threads exist, so that they inherit the mask and only the descriptor gets the signal.
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const Fd signals(::signalfd(-1, &ends, SFD_CLOEXEC));

  FixtureHistory history;
  ServerOptions options;
  options.addresses = {{"127.0.0.1", 0}};
  const auto server = Server::listen(std::move(options), history.sources());
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message().c_str());
    return 1;
  }
  std::printf("http://127.0.0.1:%u\n", static_cast<unsigned>((*server)->port()));
  std::fflush(stdout);
  listen_to_stdin(signals.get(), history);
  return 0;
}

}  // namespace
}  // namespace flamed::api

int main() { return flamed::api::run(); }
