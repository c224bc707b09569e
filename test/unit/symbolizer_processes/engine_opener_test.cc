// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/engine_opener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "symbolizer/opener/guarded_opener.h"
#include "test/catch.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::symbolizer {
namespace {

constexpr uid_t kStranger = 64101;

/// A socket at which somebody listens.
Fd listen_at(const std::string& path, int backlog = 8) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  if (backlog >= 0) REQUIRE(::listen(socket.get(), backlog) == 0);
  return socket;
}

std::string read_some(const Fd& from) {
  std::array<char, 4096> buffer{};
  const ssize_t size = ::read(from.get(), buffer.data(), buffer.size());
  return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

TEST_CASE("an engine gets the question, and its answer can be waited for") {
  const test::TemporaryDirectory folder;
  const Fd engine = listen_at(folder.path("engine.sock"));
  const Result<Fd> connection = connect_engine(folder.path("engine.sock"), "question");
  REQUIRE(connection);
  CHECK((::fcntl(connection->get(), F_GETFL) & O_NONBLOCK) == 0);
  const Fd accepted(::accept(engine.get(), nullptr, nullptr));
  CHECK(read_some(accepted) == "question");
  REQUIRE(::send(accepted.get(), "answer", 6, MSG_NOSIGNAL) == 6);
  CHECK(read_some(*connection) == "answer");
}

TEST_CASE("the open helper connects to an engine, and keeps no connection") {
  const test::TemporaryDirectory folder;
  const Fd engine = listen_at(folder.path("engine.sock"));
  const SystemClock clock;
  GuardedOpener opener(clock, {.program = OPEN_HELPER_PROGRAM});
  Result<Fd> connection = opener.connect_engine(folder.path("engine.sock"), std::string("a\0b", 3));
  REQUIRE(connection);
  const Fd accepted(::accept(engine.get(), nullptr, nullptr));
  CHECK(read_some(accepted) == std::string("a\0b", 3));
  connection->reset();
  CHECK(read_some(accepted).empty());

  CHECK(opener.connect_engine(folder.path("none.sock"), "question").error().message() ==
        "open: No such file or directory");
  CHECK(opener.connect_engine("/" + std::string(5000, 'a'), "question").error().code() == ENAMETOOLONG);
  CHECK(opener.stats().timeouts == 0);
}

TEST_CASE("only a socket with somebody behind it, and without links on the way, is an engine") {
  const test::TemporaryDirectory folder;
  const Fd engine = listen_at(folder.path("engine.sock"));
  std::filesystem::create_symlink(folder.path("engine.sock"), folder.path("link.sock"));
  std::filesystem::create_symlink(folder.path(), folder.path("link"));
  const std::string linked = "its path has a symbolic link: name what it leads to";
  CHECK(connect_engine(folder.path("link.sock"), "q").error().message() == linked);
  CHECK(connect_engine(folder.path("link/engine.sock"), "q").error().message() == linked);

  CHECK(connect_engine(folder.write("file", ""), "q").error().message() == "it is no socket");
  CHECK(connect_engine(folder.path().string(), "q").error().message() == "it is no socket");
  static_cast<void>(listen_at(folder.path("left.sock")));
  CHECK(connect_engine(folder.path("left.sock"), "q").error().code() == ECONNREFUSED);
  const Fd silent = listen_at(folder.path("silent.sock"), -1);
  CHECK(connect_engine(folder.path("silent.sock"), "q").error().code() == ECONNREFUSED);
}

TEST_CASE("an engine that accepts nothing, or does not read, is not waited for") {
  const test::TemporaryDirectory folder;
  const Fd engine = listen_at(folder.path("engine.sock"), 0);
  std::vector<Fd> connections;
  Result<Fd> last = connect_engine(folder.path("engine.sock"), "q");
  for (int i = 0; i < 100 && last; ++i) {
    connections.push_back(std::move(*last));
    last = connect_engine(folder.path("engine.sock"), "q");
  }
  REQUIRE_FALSE(last);
  CHECK(last.error().message() == "it takes no more connections");

  const Fd other = listen_at(folder.path("other.sock"));
  const std::string huge(std::size_t{4} << 20, 'q');
  CHECK(connect_engine(folder.path("other.sock"), huge).error().message() == "it does not take the question");
}

TEST_CASE("a socket of another user, behind which another user listens, or that flamed may not open, is no engine") {
  if (::geteuid() != 0) {
    WARN("SKIP: only root can make sockets of others");
    return;
  }
  const test::TemporaryDirectory folder;
  const Fd engine = listen_at(folder.path("engine.sock"));
  REQUIRE(::chown(folder.path("engine.sock").c_str(), kStranger, 0) == 0);
  CHECK(connect_engine(folder.path("engine.sock"), "q").error().message() == "it is not root's but of user 64101");

  const Fd other = listen_at(folder.path("other.sock"), -1);
  REQUIRE(::seteuid(kStranger) == 0);
  const int listens = ::listen(other.get(), 8);
  REQUIRE(::seteuid(0) == 0);
  REQUIRE(listens == 0);
  CHECK(connect_engine(folder.path("other.sock"), "q").error().message() == "not root but user 64101 listens there");

  REQUIRE(::chmod(folder.path().c_str(), 0711) == 0);
  const Fd closed = listen_at(folder.path("closed.sock"));
  REQUIRE(::chmod(folder.path("closed.sock").c_str(), 0600) == 0);
  REQUIRE(::seteuid(kStranger) == 0);
  const Result<Fd> refused = connect_engine(folder.path("closed.sock"), "q");
  REQUIRE(::seteuid(0) == 0);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message() == "flamed may not: give it the group of the socket, or CAP_DAC_OVERRIDE");

  const Fd accepted(::accept4(other.get(), nullptr, nullptr, SOCK_NONBLOCK));
  CHECK(read_some(accepted).empty());
}

}  // namespace
}  // namespace flamed::symbolizer
