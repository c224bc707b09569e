// SPDX-License-Identifier: Apache-2.0
//
// Server: the HTTP side of flamed. The HTTP library stays inside server.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "api/sources.h"
#include "base/result.h"

namespace flamed::api {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 9090;  ///< 0: any free port, see Server::port()
  std::size_t threads = 4;
};

/// Binds in listen(), serves on its own threads until destroyed. `sources` must outlive it.
class Server {
 public:
  /// Binds and starts answering. When the port is taken the error names the process that has it, as far as it can be
  /// seen, and how to choose another port.
  static Result<std::unique_ptr<Server>> listen(const ServerOptions& options, Sources& sources);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// Requests answered so far, by status code class, for /metrics.
  [[nodiscard]] std::uint64_t requests() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamed::api
