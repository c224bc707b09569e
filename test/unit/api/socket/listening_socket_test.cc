// SPDX-License-Identifier: Apache-2.0
#include "api/socket/listening_socket.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "test/catch.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::api {
namespace {

ListenAddress unix_address(const std::string& path) { return {"", 0, path}; }

Fd connect_to(const std::string& path) {
  Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) client.reset();
  return client;
}

/// A socket file without a listener, as a killed daemon leaves it.
void leave_stale(const std::string& path) {
  const Fd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  REQUIRE(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

TEST_CASE("a Unix socket is accessible to its owner and group, whatever the umask") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() / "flamed.sock";
  for (const mode_t mask : {mode_t{0000}, mode_t{0077}, mode_t{0777}}) {
    const mode_t before = ::umask(mask);
    const auto socket = ListeningSocket::open(unix_address(path), Reach::kThisHost);
    ::umask(before);
    REQUIRE(socket.ok());
    CHECK(socket->name() == "unix:" + path);
    CHECK_FALSE(socket->endpoint().has_value());
    struct stat facts {};
    REQUIRE(::stat(path.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 07777) == 0660);
    if (const group* readers = ::getgrnam("flamed"); readers != nullptr && ::geteuid() == 0) {
      CHECK(facts.st_gid == readers->gr_gid);
    }
    CHECK(connect_to(path));
  }
  CHECK_FALSE(exists(path));
}

TEST_CASE("the folder of a Unix socket is created if it is missing") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() / "run" / "flamed.sock";
  CHECK(ListeningSocket::open(unix_address(path), Reach::kThisHost).ok());
  const std::string deep = directory.path() / "no" / "run" / "flamed.sock";
  CHECK_FALSE(ListeningSocket::open(unix_address(deep), Reach::kThisHost).ok());
}

TEST_CASE("the socket of a daemon that was killed is replaced") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() / "flamed.sock";
  leave_stale(path);
  const auto socket = ListeningSocket::open(unix_address(path), Reach::kThisHost);
  REQUIRE(socket.ok());
  CHECK(connect_to(path));
}

TEST_CASE("a Unix socket that is in use stays, and its owner is named") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() / "flamed.sock";
  const std::string message =
      "cannot listen on unix:" + path + ": it is taken by unit_api (pid " + std::to_string(::getpid()) + ")";
  SECTION("by another flamed") {
    const auto first = ListeningSocket::open(unix_address(path), Reach::kThisHost);
    REQUIRE(first.ok());
    const auto second = ListeningSocket::open(unix_address(path), Reach::kThisHost);
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().message().starts_with(message));
    CHECK(second.error().code() == EADDRINUSE);
    CHECK(connect_to(path));
  }
  SECTION("by a program that takes no lock") {
    const Fd other(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    REQUIRE(::bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(other.get(), 1) == 0);
    const auto second = ListeningSocket::open(unix_address(path), Reach::kThisHost);
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().message().starts_with(message));
    CHECK(connect_to(path));
  }
}

TEST_CASE("a file that is not a socket is never removed") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("flamed.sock", "precious");
  CHECK_FALSE(ListeningSocket::open(unix_address(path), Reach::kThisHost).ok());
  CHECK(exists(path));
  const std::string link = directory.path() / "link.sock";
  REQUIRE(::symlink(path.c_str(), link.c_str()) == 0);
  CHECK_FALSE(ListeningSocket::open(unix_address(link), Reach::kThisHost).ok());
  CHECK(exists(path));
}

TEST_CASE("a Unix socket by which another program replaced ours is not removed") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() / "flamed.sock";
  {
    const auto socket = ListeningSocket::open(unix_address(path), Reach::kThisHost);
    REQUIRE(socket.ok());
    const std::string other = directory.path() / "other.sock";
    leave_stale(other);
    REQUIRE(::rename(other.c_str(), path.c_str()) == 0);
  }
  CHECK(exists(path));
}

TEST_CASE("without a token flamed listens to this host only, also on named and inherited sockets") {
  const auto any = ListeningSocket::open({"0.0.0.0", 0}, Reach::kThisHost);
  REQUIRE_FALSE(any.ok());
  CHECK(any.error().message().starts_with("refusing to listen on 0.0.0.0:0: "));
  CHECK(any.error().code() == EPERM);

  auto network = ListeningSocket::open({"0.0.0.0", 0}, Reach::kNetwork);
  REQUIRE(network.ok());
  CHECK(ListeningSocket::open({"localhost", 0}, Reach::kThisHost).ok());
  const auto copy = [&] { return Fd(::fcntl(network->descriptor(), F_DUPFD_CLOEXEC, 3)); };
  CHECK_FALSE(ListeningSocket::adopt(copy(), Reach::kThisHost).ok());
  const auto adopted = ListeningSocket::adopt(copy(), Reach::kNetwork);
  REQUIRE(adopted.ok());
  CHECK(adopted->endpoint() == network->endpoint());
}

TEST_CASE("a socket of the service manager is used as it is") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() / "flamed.sock";
  const auto opened = ListeningSocket::open(unix_address(path), Reach::kThisHost);
  REQUIRE(opened.ok());
  Fd copy(::dup(opened->descriptor()));
  REQUIRE(::fcntl(copy.get(), F_SETFL, 0) == 0);
  {
    const auto adopted = ListeningSocket::adopt(std::move(copy), Reach::kThisHost);
    REQUIRE(adopted.ok());
    CHECK(adopted->name() == "unix:" + path);
    CHECK((::fcntl(adopted->descriptor(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(adopted->descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(exists(path));  // its maker removes it
}

TEST_CASE("a descriptor that does not listen is not taken over") {
  const auto adopt = [](int descriptor) { return ListeningSocket::adopt(Fd(descriptor), Reach::kThisHost); };
  CHECK_FALSE(adopt(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)).ok());
  CHECK_FALSE(adopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)).ok());
  const auto file = adopt(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().message().find("ListenStream=") != std::string::npos);
}

}  // namespace
}  // namespace flamed::api
