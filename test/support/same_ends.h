// SPDX-License-Identifier: Apache-2.0
//
// Two sockets of this host that have the same four ends: one is bound to `lo`, the other one to no interface.
#pragma once

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

#include "base/handle.h"
#include "test/catch.h"

namespace flamed::test {

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Before it is connected. Any user may. It gets a port that can be asked for again, by sockets that say so, too, and
/// that no others come to share, as they share those which connect() takes.
inline void bind_to_loopback(const Fd& socket) {
  const int on = 1;
  REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, "lo", sizeof "lo") == 0);
  const sockaddr_in any_port = loopback(0);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any_port), sizeof any_port) == 0);
}

/// A socket that tries to connect from a port that a socket of bind_to_loopback() has connected from. What the kernel
/// would have it answer to that one's packets ends the connection: here it hears none, as if they were on the way.
inline Fd connect_in_vain(std::uint16_t from, std::uint16_t to) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog all{1, &drop};
  REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof all) == 0);
  const sockaddr_in own = loopback(from);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
  const sockaddr_in other = loopback(to);
  REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&other), sizeof other) != 0);
  REQUIRE(errno == EINPROGRESS);
  return socket;
}

}  // namespace flamed::test
