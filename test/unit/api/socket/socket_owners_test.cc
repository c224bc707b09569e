// SPDX-License-Identifier: Apache-2.0
#include "api/socket/socket_owners.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "api/socket/peer_lookup.h"
#include "test/catch.h"
#include "test/support/same_ends.h"

namespace flamed::api {
namespace {

using test::bind_to_loopback;

constexpr uid_t kStranger = 54321;  ///< needs no account to own a socket

/// A connection from 127.0.0.1 or ::1 to a socket that listens there.
class Connected {
 public:
  enum class Client { kUsual, kBoundToLoopback };
  explicit Connected(Client kind) : Connected(AF_INET, AF_INET, kind) {}
  explicit Connected(int client_family = AF_INET, int server_family = AF_INET, Client kind = Client::kUsual)
      : listener_(::socket(server_family, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        client(::socket(client_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_storage address = loopback(server_family, 0, client_family != server_family);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_.get(), 8) == 0);
    socklen_t size = sizeof address;
    REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    const sockaddr_storage target =
        loopback(client_family, ip_endpoint(address)->port, client_family == AF_INET6 && server_family == AF_INET);
    if (kind == Client::kBoundToLoopback) bind_to_loopback(client);
    REQUIRE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0);
    server.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(server);
  }

  [[nodiscard]] TcpEnds ends() const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    REQUIRE(::getpeername(server.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    const IpEndpoint from = *ip_endpoint(address);
    size = sizeof address;
    REQUIRE(::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    return {from, *ip_endpoint(address)};
  }

 private:
  /// `mapped`: an IPv6 socket that talks IPv4, for a server on all addresses.
  static sockaddr_storage loopback(int family, std::uint16_t port, bool mapped) {
    sockaddr_storage address{};
    if (family == AF_INET) {
      sockaddr_in ipv4{};
      ipv4.sin_family = AF_INET;
      ipv4.sin_port = htons(port);
      ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      std::memcpy(&address, &ipv4, sizeof ipv4);
    } else {
      sockaddr_in6 ipv6{};
      ipv6.sin6_family = AF_INET6;
      ipv6.sin6_port = htons(port);
      REQUIRE(::inet_pton(AF_INET6, mapped ? "::ffff:127.0.0.1" : "::1", &ipv6.sin6_addr) == 1);
      std::memcpy(&address, &ipv6, sizeof ipv6);
    }
    return address;
  }

  Fd listener_;

 public:
  Fd client;
  Fd server;
};

/// Another socket with the client's addresses, which gets no answers.
Fd connect_in_vain(const TcpEnds& ends) { return test::connect_in_vain(ends.client.port, ends.server.port); }

bool has_ipv6() {
  const Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return socket && ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

TEST_CASE("the kernel names the owner of the client's socket") {
  auto owners = KernelSocketOwners::open();
  REQUIRE(owners.ok());
  const Connected connection;
  CHECK(owners->owner_of(connection.ends()) == ::getuid());
  const Peer peer = look_up_peer(connection.server.get(), &*owners);
  CHECK(peer.transport == Peer::Transport::kLoopback);
  CHECK(peer.uid == ::getuid());
}

TEST_CASE("the owner is found for both protocols on each side") {
  if (!has_ipv6()) {
    WARN("SKIP ipv6: no IPv6 on the loopback interface");
    return;
  }
  auto owners = KernelSocketOwners::open();
  REQUIRE(owners.ok());
  for (const auto& [client, server] : {std::pair(AF_INET6, AF_INET6), {AF_INET, AF_INET6}, {AF_INET6, AF_INET}}) {
    INFO(client << " to " << server);
    const Connected connection(client, server);
    CHECK(owners->owner_of(connection.ends()) == ::getuid());
    CHECK(look_up_peer(connection.server.get(), &*owners).transport == Peer::Transport::kLoopback);
  }
}

TEST_CASE("a socket belongs to the user that made it, whoever uses it") {
  if (::geteuid() != 0) {
    WARN("SKIP: only root can make sockets of others");
    return;
  }
  auto owners = KernelSocketOwners::open();
  REQUIRE(owners.ok());
  REQUIRE(::seteuid(kStranger) == 0);
  const Connected connection;
  REQUIRE(::seteuid(0) == 0);
  CHECK(owners->owner_of(connection.ends()) == kStranger);
}

TEST_CASE("a socket that its client has closed has no owner, and is not root's") {
  auto owners = KernelSocketOwners::open();
  REQUIRE(owners.ok());
  SECTION("with bytes on the way") {
    Connected connection;
    const TcpEnds ends = connection.ends();
    REQUIRE(::send(connection.client.get(), "x", 1, 0) == 1);
    connection.client.reset();
    CHECK_FALSE(owners->owner_of(ends).has_value());
  }
  SECTION("and its server as well, so that it is in TIME_WAIT") {
    Connected connection;
    const TcpEnds ends = connection.ends();
    connection.client.reset();
    connection.server.reset();
    CHECK_FALSE(owners->owner_of(ends).has_value());
  }
}

TEST_CASE("a client that is bound to an interface is not taken for another client with its port") {
  auto owners = KernelSocketOwners::open();
  REQUIRE(owners.ok());
  const Connected connection(Connected::Client::kBoundToLoopback);
  // The first socket in the kernel's table gets the answers.
  CHECK_FALSE(owners->owner_of(connection.ends()).has_value());
  PeerLookup lookup;
  CHECK_FALSE(lookup.look_up(connection.server.get()).uid.has_value());
  CHECK(lookup.state().ok());

  const Fd connecting = connect_in_vain(connection.ends());
  CHECK_FALSE(owners->owner_of(connection.ends()).has_value());
  CHECK_FALSE(lookup.look_up(connection.server.get()).uid.has_value());
}

TEST_CASE("a client that only shut down sending is still identified") {
  auto owners = KernelSocketOwners::open();
  REQUIRE(owners.ok());
  const Connected connection;
  REQUIRE(::shutdown(connection.client.get(), SHUT_WR) == 0);
  CHECK(owners->owner_of(connection.ends()) == ::getuid());
}

TEST_CASE("a listener on the port that a client had is not taken for the client") {
  auto owners = KernelSocketOwners::open();
  REQUIRE(owners.ok());
  const Connected connection;
  // The kernel finds the listening socket for it.
  const TcpEnds never{connection.ends().server, {connection.ends().client.address, 1}};
  CHECK_FALSE(owners->owner_of(never).has_value());
}

TEST_CASE("the peer on a Unix socket is the user who connected") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const Fd ours(pair[0]);
  const Fd theirs(pair[1]);
  const Peer peer = look_up_peer(ours.get(), nullptr);
  CHECK(peer.transport == Peer::Transport::kUnix);
  CHECK(peer.uid == ::getuid());
}

TEST_CASE("a TCP peer that the kernel does not identify is unknown") {
  const Connected connection;
  const Peer peer = look_up_peer(connection.server.get(), nullptr);
  CHECK(peer.transport == Peer::Transport::kLoopback);
  CHECK_FALSE(peer.uid.has_value());
  // Not a connection.
  CHECK(look_up_peer(-1, nullptr).transport == Peer::Transport::kRemote);
}

/// A kernel that knows some ends of connections and not the others.
class FakeKernel final : public SocketOwners {
 public:
  explicit FakeKernel(std::vector<IpEndpoint> known) : known_(std::move(known)) {}
  std::optional<uid_t> owner_of(const TcpEnds& ends) override {
    const bool knows = std::find(known_.begin(), known_.end(), ends.client) != known_.end();
    return knows ? std::optional<uid_t>(kStranger) : std::nullopt;
  }

 private:
  std::vector<IpEndpoint> known_;
};

/// A kernel that answers in turn.
class ChangingKernel final : public SocketOwners {
 public:
  explicit ChangingKernel(std::vector<std::optional<uid_t>>& answers) : answers_(answers) {}
  std::optional<uid_t> owner_of(const TcpEnds& /*ends*/) override {
    REQUIRE_FALSE(answers_.empty());
    const std::optional<uid_t> answer = answers_.front();
    answers_.erase(answers_.begin());
    return answer;
  }

 private:
  std::vector<std::optional<uid_t>>& answers_;
};

PeerLookup lookup_with(const std::vector<IpEndpoint>& known) {
  return PeerLookup([known]() -> Result<std::unique_ptr<SocketOwners>> {
    return std::unique_ptr<SocketOwners>(std::make_unique<FakeKernel>(known));
  });
}

TEST_CASE("a kernel that does not know flamed's own end is reported, a client that closed at once is not") {
  const Connected connection;
  SECTION("it knows both") {
    PeerLookup lookup = lookup_with({connection.ends().client, connection.ends().server});
    CHECK(lookup.look_up(connection.server.get()).uid == kStranger);
    CHECK(lookup.state().ok());
    CHECK(lookup.unknown() == 0);
  }
  SECTION("it knows flamed's end alone") {
    PeerLookup lookup = lookup_with({connection.ends().server});
    CHECK_FALSE(lookup.look_up(connection.server.get()).uid.has_value());
    CHECK(lookup.state().ok());
    CHECK(lookup.unknown() == 1);
  }
  SECTION("it knows neither") {
    PeerLookup lookup = lookup_with({});
    CHECK_FALSE(lookup.look_up(connection.server.get()).uid.has_value());
    REQUIRE_FALSE(lookup.state().ok());
    CHECK(lookup.state().error().message().find("modprobe tcp_diag") != std::string::npos);
    CHECK(lookup.unknown() == 1);
  }
}

TEST_CASE("the caller is looked up again at the first request, and is unknown unless still the same") {
  const Connected connection;
  std::vector<std::optional<uid_t>> answers;
  PeerLookup lookup([&]() -> Result<std::unique_ptr<SocketOwners>> {
    return std::unique_ptr<SocketOwners>(std::make_unique<ChangingKernel>(answers));
  });
  const int socket = connection.server.get();
  const Peer accepted{Peer::Transport::kLoopback, 0};
  const Peer nobody{Peer::Transport::kLoopback, std::nullopt};
  answers = {0};
  CHECK(lookup.look_up_again(socket, accepted) == accepted);
  CHECK(lookup.unknown() == 0);
  answers = {kStranger};
  CHECK(lookup.look_up_again(socket, accepted) == nobody);
  answers = {std::nullopt};
  CHECK(lookup.look_up_again(socket, accepted) == nobody);
  CHECK(lookup.unknown() == 2);
  answers = {0};
  CHECK(lookup.look_up_again(socket, nobody) == nobody);
  const Peer over_unix{Peer::Transport::kUnix, 0};
  CHECK(lookup.look_up_again(socket, over_unix) == over_unix);
}

TEST_CASE("the kernel knows flamed's own end of a connection whose client has closed it") {
  PeerLookup lookup;
  Connected connection;
  connection.client.reset();
  CHECK_FALSE(lookup.look_up(connection.server.get()).uid.has_value());
  CHECK(lookup.state().ok());
  CHECK(lookup.unknown() == 1);
}

TEST_CASE("where the kernel cannot be asked, each connection tries again") {
  int refusals = 2;
  PeerLookup lookup([&]() -> Result<std::unique_ptr<SocketOwners>> {
    if (refusals-- > 0) return Error("netlink sock_diag: not today");
    return open_kernel_socket_owners();
  });
  const Connected connection;
  REQUIRE_FALSE(lookup.state().ok());
  const std::string message = lookup.state().error().message();
  INFO(message);
  CHECK(message.starts_with("netlink sock_diag: not today; "));
  CHECK(message.find("RestrictAddressFamilies=") != std::string::npos);
  CHECK_FALSE(lookup.look_up(connection.server.get()).uid.has_value());
  CHECK_FALSE(lookup.state().ok());
  CHECK(lookup.look_up(connection.server.get()).uid == ::getuid());
  CHECK(lookup.state().ok());
  CHECK(lookup.unknown() == 1);
}

TEST_CASE("only an answer about exactly that socket names its owner") {
  TcpEnds ends;
  ends.client.address = ends.server.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  ends.client.port = 40000;
  ends.server.port = 9090;

  nlmsghdr header{};
  header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  header.nlmsg_seq = 7;
  inet_diag_msg found{};
  found.idiag_family = AF_INET;
  found.idiag_state = TCP_ESTABLISHED;
  found.id.idiag_sport = htons(40000);
  found.id.idiag_dport = htons(9090);
  found.id.idiag_src[0] = found.id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
  found.idiag_uid = 1000;
  found.idiag_inode = 99;
  const auto answer = [&] {
    std::vector<std::byte> bytes(NLMSG_LENGTH(sizeof found));
    header.nlmsg_len = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + NLMSG_HDRLEN, &found, sizeof found);
    return bytes;
  };
  found.id.idiag_cookie[0] = 2;
  found.id.idiag_cookie[1] = 1;
  REQUIRE(decode_owner(answer(), ends, 7) == OwnedSocket{1000, 0x1'0000'0002});

  SECTION("another question's") { header.nlmsg_seq = 6; }
  SECTION("an error") { header.nlmsg_type = NLMSG_ERROR; }
  SECTION("another client") { found.id.idiag_sport = htons(40001); }
  SECTION("another address") { found.id.idiag_src[0] = htonl(INADDR_LOOPBACK + 1); }
  SECTION("a socket that listens") { found.idiag_state = TCP_LISTEN; }
  SECTION("a socket that is only trying to connect") { found.idiag_state = TCP_SYN_SENT; }
  SECTION("a socket that is being connected to") { found.idiag_state = TCP_SYN_RECV; }
  SECTION("a socket that no process holds") { found.idiag_inode = 0; }
  SECTION("another family") { found.idiag_family = AF_UNIX; }
  CHECK_FALSE(decode_owner(answer(), ends, 7).has_value());
}

TEST_CASE("a truncated answer names no owner") {
  const TcpEnds ends;
  std::vector<std::byte> bytes(NLMSG_LENGTH(sizeof(inet_diag_msg)) - 1);
  for (; !bytes.empty(); bytes.pop_back()) CHECK_FALSE(decode_owner(bytes, ends, 0).has_value());
}

}  // namespace
}  // namespace flamed::api
