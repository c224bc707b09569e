// SPDX-License-Identifier: Apache-2.0
//
// Server: the HTTP side of flamed. The HTTP library stays inside server.cc.
//
// Sockets and threads are flamed's own, the library parses requests and writes answers: its server of Debian 12 uses
// select(), which fails once the daemon holds more than 1,024 descriptors (modules are held open), reads headers
// without a bound, shares its port with a second daemon, and cannot be stopped while a client hangs.
#pragma once

#include <chrono>
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
  /// How long after its end a window that a request waited for is answered: samples are drained once a second.
  std::chrono::milliseconds drain_time{2000};
};

/// Binds in listen(), serves on its own threads until destroyed, which takes no longer than the queries under way: idle
/// and slow clients are cut off. `sources` must outlive it.
class Server {
 public:
  /// Binds and starts answering. When the port is taken the error names the process that has it, as far as it can be
  /// seen, and how to choose another port.
  static Result<std::unique_ptr<Server>> listen(const ServerOptions& options, Sources& sources);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// Requests answered so far. /metrics has them by class of status code without the daemon's help.
  [[nodiscard]] std::uint64_t requests() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamed::api
