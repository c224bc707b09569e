// SPDX-License-Identifier: Apache-2.0
//
// Finds out who is at the other end of a connection that was accepted, and whether the kernel lets itself be asked.
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

/// `owners` is null where the kernel cannot be asked: peers over TCP are nobody then. On the thread of `owners`.
Peer look_up_peer(int socket, SocketOwners* owners);

/// Belongs to the gate's thread, but for state() and unknown().
///
/// Where the kernel does not tell whose TCP connections are, everybody on this host is an unknown user, which looks
/// like a fault of theirs. So it is told: an answer that does not come is asked for once more about flamed's own end of
/// the same connection, of which the kernel must know.
class PeerLookup {
 public:
  using Open = std::function<Result<std::unique_ptr<SocketOwners>>()>;
  /// `open` is called again at each TCP connection for as long as it fails.
  explicit PeerLookup(Open open = open_kernel_socket_owners);

  Peer look_up(int socket);
  /// Who it is with the first request, which may come much later: nobody who is known, unless it is still `accepted`.
  Peer look_up_again(int socket, const Peer& accepted);

  /// Why no TCP connection has a user, what that means and what to do; ok while the kernel tells.
  [[nodiscard]] Status state() const;
  /// TCP connections from this host that have no user: all of them while state() is an error, else those whose client
  /// was gone at once or is bound to an interface.
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }

 private:
  void open_owners();
  [[nodiscard]] bool knows_own_end(int socket);
  void set_problem(std::string problem);

  const Open open_;
  std::unique_ptr<SocketOwners> owners_;
  std::atomic<std::uint64_t> unknown_{0};
  mutable std::mutex mutex_;
  std::string problem_;  ///< empty: none; by mutex_
};

}  // namespace flamed::api
