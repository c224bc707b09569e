// SPDX-License-Identifier: Apache-2.0
//
// ListeningSocket: a socket that the API accepts connections on. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "api/socket/ip_endpoint.h"
#include "api/socket/listen_address.h"
#include "api/socket/unix_socket_path.h"
#include "base/handle.h"
#include "base/result.h"

namespace flamed::api {

/// The hosts that may reach a TCP socket.
enum class Reach : std::uint8_t {
  kThisHost,  ///< only addresses of the loopback interface are listened on
  kNetwork,   ///< any address
};

class ListeningSocket {
 public:
  /// Binds and listens, close-on-exec and non-blocking. A port is ours alone: without SO_REUSEPORT a second daemon is
  /// refused instead of getting half of the requests. If an address is in use, the error says how to see
  /// which process uses it and how to choose another; its code is EADDRINUSE. EPERM: beyond `reach`.
  static Result<ListeningSocket> open(const ListenAddress& address, Reach reach);

  /// Takes over a listening stream socket from a service manager.
  static Result<ListeningSocket> adopt(Fd socket, Reach reach);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Empty for a Unix socket.
  [[nodiscard]] const std::optional<IpEndpoint>& endpoint() const { return endpoint_; }
  /// "127.0.0.1:9090", "unix:/run/flamed/flamed.sock": for people.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  ListeningSocket(Fd socket, std::optional<IpEndpoint> endpoint, std::string name)
      : socket_(std::move(socket)), endpoint_(endpoint), name_(std::move(name)) {}

  Fd socket_;
  std::optional<IpEndpoint> endpoint_;
  std::string name_;
  std::optional<UnixSocketPath> path_{};  ///< removed in the end
};

}  // namespace flamed::api
