// SPDX-License-Identifier: Apache-2.0
//
// ListenAddress: where to answer: a TCP port, or a Unix socket. A plain value; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed::api {

struct ListenAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 9090;  ///< 0: any that is free
  std::string path{};         ///< of a Unix socket; then host and port are unused

  [[nodiscard]] bool is_unix() const { return !path.empty(); }
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

/// "HOST:PORT", "[v6]:PORT" or "unix:/PATH". Pure.
Result<ListenAddress> parse_listen_address(std::string_view text);

/// As parse_listen_address() takes it.
std::string to_string(const ListenAddress& address);

/// The host is a numeric address beyond loopback: 0.0.0.0, 192.0.2.1. False for names, which are not looked up here.
[[nodiscard]] bool is_beyond_loopback(const ListenAddress& address);

/// Why flamed does not listen there, and what to do.
Error beyond_loopback(std::string_view address);

}  // namespace flamed::api
