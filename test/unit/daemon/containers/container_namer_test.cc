// SPDX-License-Identifier: Apache-2.0
#include "daemon/containers/container_namer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/model/container_text.h"
#include "test/catch.h"
#include "test/support/captured_log.h"
#include "test/unit/symbolizer/forwarding_reader.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

using symbolizer::ContainerEngine;
using symbolizer::EngineProtocol;

// No engine of this machine has them.
const std::string kId = "f1a3ed" + std::string(57, '0') + "1";
const std::string kOther = "f1a3ed" + std::string(57, '0') + "2";

/// An engine of Docker's API that knows one container.
class Engine {
 public:
  explicit Engine(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(socket_.get(), 8) == 0);
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) serve();
    });
  }
  std::atomic<bool> is_sane = true;
  std::atomic<int> asked = 0;

 private:
  void serve() {
    pollfd polled{socket_.get(), POLLIN, 0};
    if (::poll(&polled, 1, 20) <= 0) return;
    const Fd client(::accept(socket_.get(), nullptr, nullptr));
    std::array<char, 1024> question{};
    if (::read(client.get(), question.data(), question.size()) <= 0) return;
    const bool is_known = std::string(question.data()).starts_with("GET /containers/" + kId + "/json ");
    std::string answer = is_known ? R"(HTTP/1.0 200 OK)"
                                    "\r\n\r\n"
                                    R"({"Id":")" +
                                        kId + R"(","Name":"/web","Config":{"Env":["A=secret"]}})"
                                  : "HTTP/1.0 404 Not Found\r\n\r\n";
    if (!is_sane) answer = "a secret";
    ++asked;
    static_cast<void>(::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
  }
  Fd socket_;
  std::jthread thread_;
};

struct Fixture {
  explicit Fixture(const std::vector<ContainerEngine>& engines) : namer(opener, reader, clock, engines) {
    thread = std::jthread([this](const std::stop_token& stop) { namer.run(stop); });
  }
  /// Whether it is true within ten seconds.
  static bool within(const std::function<bool()>& is_true) {
    for (int i = 0; i < 500; ++i) {
      if (is_true()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  SystemClock clock;
  symbolizer::GuardedOpener opener{clock, {.program = OPEN_HELPER_PROGRAM}};
  symbolizer::ForwardingReader reader;
  ContainerNamer namer;
  std::jthread thread;
};

TEST_CASE("a container that no file names is named by the engines of the configuration, in their order") {
  const test::TemporaryDirectory folder;
  Engine engine(folder.path("engine.sock"));
  Fixture fixture({{EngineProtocol::kCri, folder.path("none.sock")},
                   {EngineProtocol::kDocker, folder.path("engine.sock")},
                   {EngineProtocol::kDocker, folder.path("behind.sock")}});
  CHECK(fixture.namer.text_of(kId) == kId);
  CHECK(Fixture::within([&] { return fixture.namer.take_named().contains(kId); }));
  CHECK(fixture.namer.text_of(kId) == store::join_container(kId, "web"));
  CHECK(engine.asked == 1);
}

TEST_CASE("without engines in the configuration nobody is asked") {
  const test::TemporaryDirectory folder;
  Engine engine(folder.path("engine.sock"));
  Fixture fixture({});
  CHECK(fixture.namer.text_of(kId) == kId);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(engine.asked == 0);
}

TEST_CASE("an engine that is away is asked again, and the log says so once") {
  const test::CapturedLog log;
  const test::TemporaryDirectory folder;
  const std::string socket = folder.path("engine.sock");
  Fixture fixture({{EngineProtocol::kDocker, socket}});
  for (const std::string& id : {kId, kOther}) CHECK(fixture.namer.text_of(id) == id);
  REQUIRE(Fixture::within([&] { return log.text().find("cannot ask") != std::string::npos; }));
  Engine engine(socket);
  CHECK(Fixture::within([&] { return fixture.namer.take_named().contains(kId); }));
  CHECK(Fixture::within([&] { return log.text().find("answers again") != std::string::npos; }));
  fixture.thread = {};
  CHECK(log.text() == "warning: cannot ask the container engine at " + socket +
                          ": open: No such file or directory\ninfo: the container engine at " + socket +
                          " answers again\n");
}

TEST_CASE("an engine that answers nonsense is left alone for a while") {
  const test::CapturedLog log;
  const test::TemporaryDirectory folder;
  Engine engine(folder.path("engine.sock"));
  engine.is_sane = false;
  Fixture fixture({{EngineProtocol::kDocker, folder.path("engine.sock")}});
  CHECK(fixture.namer.text_of(kId) == kId);
  REQUIRE(Fixture::within([&] { return engine.asked == 1; }));
  for (int i = 0; i < 10; ++i) static_cast<void>(fixture.namer.text_of(std::string(63, 'e') + std::to_string(i)));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(engine.asked == 1);
  fixture.thread = {};
  CHECK(log.text().find("it is no answer of HTTP/1") != std::string::npos);
  CHECK(log.text().find("secret") == std::string::npos);
}

}  // namespace
}  // namespace flamed::daemon
