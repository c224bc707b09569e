// SPDX-License-Identifier: Apache-2.0
//
// IpEndpoint: an IP address and a port. A plain value; any thread.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace flamed::api {

struct IpEndpoint {
  /// In network order. An IPv4 address is mapped (::ffff:a.b.c.d), so that addresses of dual-stack sockets and of IPv4
  /// sockets compare equal.
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;

  friend bool operator==(const IpEndpoint&, const IpEndpoint&) = default;
};

/// Empty for other families.
std::optional<IpEndpoint> ip_endpoint(const sockaddr_storage& address);

[[nodiscard]] bool is_ipv4(const IpEndpoint& endpoint);
/// 127.0.0.0/8 or ::1.
[[nodiscard]] bool is_loopback(const IpEndpoint& endpoint);

/// "127.0.0.1:9090", "[::1]:9090".
std::string to_string(const IpEndpoint& endpoint);

}  // namespace flamed::api
