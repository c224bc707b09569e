// SPDX-License-Identifier: Apache-2.0
//
// Server: the HTTP side of flamed: the gate in front, a queue, and the threads that answer. No HTTP library is behind
// it: docs/design/0018-no-http-library.md says why.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/socket/accept_gate.h"
#include "api/socket/ip_endpoint.h"
#include "api/socket/listen_address.h"
#include "api/socket/peer_lookup.h"
#include "api/sources.h"
#include "base/handle.h"
#include "base/result.h"

namespace flamed::api {

struct ServerOptions {
  std::vector<ListenAddress> addresses{ListenAddress{}};
  std::vector<Fd> inherited{};  ///< listening sockets from a service manager
  /// The tokens for other hosts. Without it flamed listens only on this host. Empty: none.
  std::string token_file{};
  /// Whose data they are: he and root see everything, and nobody else anything. Without it, users see their own.
  std::optional<uid_t> owner{};
  /// Called once it listens, before any thread is started. An Error ends it.
  std::function<Status()> when_bound{};
  std::size_t threads = 4;            ///< answering threads; one more answers /healthz and the like
  std::size_t queued_requests = 512;  ///< waiting requests; further ones get 503
  /// Memory of answers that clients have not read yet. Beyond it no further one is begun; one user may have half of it.
  std::size_t unsent_bytes = 64U << 20;
  /// How long after the end of its window a waiting request is answered: answers have all samples up to a second ago.
  std::chrono::milliseconds drain_time{1100};
  /// Called once, by any thread, when no request has come for so long after an answer.
  std::function<void()> when_quiet{};
  std::chrono::milliseconds quiet_after{5000};
  GateLimits limits{};
  PeerLookup::Open open_owners = open_kernel_socket_owners;
};

/// Binds in listen(), serves on its own threads until destroyed, which takes no longer than the queries under way: idle
/// and slow clients are cut off. `sources` must outlive it.
class Server {
 public:
  /// Binds and starts answering. If an address is in use, the error says how to see which process uses it, and how to
  /// choose another.
  static Result<std::unique_ptr<Server>> listen(ServerOptions options, Sources& sources);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The port of the first TCP socket; 0 if there is none.
  [[nodiscard]] std::uint16_t port() const;
  /// "http://127.0.0.1:9090/, unix:/run/flamed/flamed.sock": for people.
  [[nodiscard]] std::string addresses() const;
  /// Requests answered so far.
  [[nodiscard]] std::uint64_t requests() const;
  /// Why TCP clients on this host are unknown users, and what to do: also the component `peers` of /healthz.
  [[nodiscard]] Status peers() const;
  /// CPU time that its threads have used.
  [[nodiscard]] std::int64_t cpu_ns() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamed::api
