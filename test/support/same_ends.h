// SPDX-License-Identifier: Apache-2.0
//
// Two sockets of this host with the same addresses and ports: one is bound to `lo`, the other to no interface.
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

/// Call it before connecting. Any user may. The socket gets a port that only sockets with the same option may use too,
/// and that is not shared like the ports that connect() chooses.
inline void bind_to_loopback(const Fd& socket) {
  const int on = 1;
  REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, "lo", sizeof "lo") == 0);
  const sockaddr_in any_port = loopback(0);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any_port), sizeof any_port) == 0);
}

/// A socket that tries to connect from a port from which a socket of bind_to_loopback() is connected. The kernel's
/// answers to the other socket's packets would end the connection, so this socket receives none, as if they were
/// delayed.
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
