// SPDX-License-Identifier: Apache-2.0
//
// What the service manager sees: readiness, the watchdog, the stop.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/handle.h"
#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/kernel/unit_launcher.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The socket on which systemd would listen (sd_notify(3)).
class NotifySocket {
 public:
  NotifySocket() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    // An abstract address needs no file.
    name_ = "@flamed-test-" + std::to_string(::getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name_.data(), name_.size());
    address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    ::setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  }
  ~NotifySocket() { ::unsetenv("NOTIFY_SOCKET"); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  /// The next message, or an empty one after `deadline`.
  std::string next(milliseconds deadline) {
    const timeval limit{deadline.count() / 1000, (deadline.count() % 1000) * 1000};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    std::array<char, 512> text{};
    const ssize_t size = ::recv(socket_.get(), text.data(), text.size(), 0);
    return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "";
  }

 private:
  Fd socket_;
  std::string name_;
};

TEST_CASE("a user with the capabilities of the unit, and no others, has whole and named stacks") {
  RunningDaemon daemon({}, launcher_of_the_unit());
  ChildProcess program({victim("known_chain")});
  CHECK(RunningDaemon::eventually(seconds(30), [&] {
    const auto stacks = daemon.folded("/profile?format=folded&pid=" + std::to_string(program.pid()));
    return std::any_of(stacks.begin(), stacks.end(), [](const auto& stack) {
      return stack.first.find(";main;outer;middle;work_one") != std::string::npos;
    });
  }));
  // Until the program for that is loaded, frame pointers show the same stack.
  CHECK(RunningDaemon::eventually(seconds(30) * patience(), [&] {
    return daemon.get("/healthz").body.find("walked by unwind tables") != std::string::npos;
  }));
}

TEST_CASE("with the unit's capabilities and system calls there are exact waits, and who ended them") {
  RunningDaemon daemon({}, launcher_with_filter());
  ChildProcess program({victim("waits"), "mutex", "120"});
  const std::string question = "/off_cpu?format=folded&seconds=2&pid=" + std::to_string(program.pid());
  const auto has = [&](const std::string& parameters, const std::string& part) {
    const auto stacks = daemon.folded(question + parameters);
    return std::any_of(stacks.begin(), stacks.end(), [&](const auto& stack) {
      return stack.first.ends_with(";[lock]") && stack.first.find(part) != std::string::npos;
    });
  };
  // The first stacks of a process come before flamed knows its mappings.
  CHECK(RunningDaemon::eventually(seconds(30) * patience(), [&] { return has("", ";want;"); }));
  CHECK(has("&wakers=show", ";[woken by "));
}

TEST_CASE("with the unit's capabilities and system calls code has the names of its compiler's map") {
  if (!std::filesystem::exists(victim("jit"))) {
    WARN("SKIP x86-64: the program that makes code is for x86-64 only");
    return;
  }
  RunningDaemon daemon({}, launcher_with_filter());
  ChildProcess program({victim("jit")});
  const std::string query = "/profile?format=folded&from=now-10s&pid=" + std::to_string(program.pid());
  CHECK(RunningDaemon::eventually(
      seconds(30) * patience(),
      [&] {
        const auto stacks = daemon.folded(query);
        return std::any_of(stacks.begin(), stacks.end(), [](const auto& stack) {
          return stack.first.find(";main;jit outer;jit:<b>middle;jit_work") != std::string::npos;
        });
      },
      seconds(1)));
}

TEST_CASE("the service manager is notified that the daemon is ready, alive and stopping") {
  NotifySocket socket;
  RunningDaemon daemon;
  CHECK(socket.next(seconds(10)) == "READY=1");
  CHECK(socket.next(seconds(10)) == "WATCHDOG=1");
  CHECK(socket.next(seconds(10)) == "WATCHDOG=1");
  daemon.process().signal(SIGTERM);
  std::string last;
  for (std::string message = socket.next(seconds(5)); !message.empty() && last != "STOPPING=1";
       message = socket.next(seconds(1))) {
    last = message;
  }
  CHECK(last == "STOPPING=1");
}

TEST_CASE("a stopped daemon does not feed the watchdog") {
  NotifySocket socket;
  RunningDaemon daemon;
  CHECK(socket.next(seconds(10)) == "READY=1");
  CHECK(socket.next(seconds(10)) == "WATCHDOG=1");
  daemon.process().signal(SIGSTOP);
  while (!socket.next(milliseconds(500)).empty()) {
  }
  CHECK(socket.next(seconds(5)).empty());
  daemon.process().signal(SIGCONT);
  CHECK(socket.next(seconds(10)) == "WATCHDOG=1");
}

}  // namespace
}  // namespace flamed::test
