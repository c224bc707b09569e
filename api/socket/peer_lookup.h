// SPDX-License-Identifier: Apache-2.0
//
// Finds the user of an accepted connection, and whether the kernel answers such requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "api/http/peer.h"
#include "api/socket/socket_owners.h"
#include "base/result.h"

namespace flamed::api {

/// `owners` is null if the kernel does not answer: then TCP peers are unknown users. On the thread of `owners`.
Peer look_up_peer(int socket, SocketOwners* owners);

/// Only for the gate's thread, except state() and unknown().
///
/// If the kernel does not say who owns TCP connections, everybody on this host is an unknown user, which looks like the
/// clients' fault. So flamed detects it: when the kernel has no answer about a client, it is asked about flamed's own
/// end of the same connection, which it must know.
class PeerLookup {
 public:
  using Open = std::function<Result<std::unique_ptr<SocketOwners>>()>;
  /// `open` is called again at each TCP connection for as long as it fails.
  explicit PeerLookup(Open open = open_kernel_socket_owners);

  Peer look_up(int socket);
  /// The user at the first request, which may come much later: unknown, unless it is still `accepted`.
  Peer look_up_again(int socket, const Peer& accepted);

  /// Why no TCP connection has a user, what that means and what to do; ok while the kernel answers.
  [[nodiscard]] Status state() const;
  /// TCP connections from this host that have no user: all of them while state() is an error, else those whose client
  /// disconnected at once or is bound to an interface.
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }

 private:
  void open_owners();
  [[nodiscard]] bool knows_own_end(int socket);
  void set_problem(std::string problem);

  const Open open_;
  std::unique_ptr<SocketOwners> owners_;
  std::atomic<std::uint64_t> unknown_{0};
  mutable std::mutex mutex_;
  std::string problem_;  ///< empty: none; guarded by mutex_
};

}  // namespace flamed::api
