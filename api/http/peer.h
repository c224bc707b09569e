// SPDX-License-Identifier: Apache-2.0
//
// Peer: the client's user, as far as the kernel knows it. A plain value; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace flamed::api {

struct Peer {
  enum class Transport : std::uint8_t {
    kUnix,      ///< a Unix socket: the uid is that of the process that connected (SO_PEERCRED)
    kLoopback,  ///< TCP from 127.0.0.0/8 or ::1: the uid is the creator's of the client's socket (sock_diag)
    kRemote,    ///< TCP from anywhere else: the uid is never known
  };
  /// The default has the least rights.
  Transport transport = Transport::kRemote;
  /// In flamed's own user namespace, so a container's user has the host's number for him. Empty: unknown, which gives
  /// the least rights.
  std::optional<uid_t> uid{};

  friend bool operator==(const Peer&, const Peer&) = default;
};

/// One number for each user, for shares and bounds. All unknown users of this host count as one user, all of other
/// hosts as another one.
using UserKey = std::int64_t;  // users have numbers of 32 bits

constexpr UserKey kRootKey = 0;

inline bool is_root(const Peer& peer) { return peer.uid == uid_t{0}; }

inline UserKey key_of(const Peer& peer) {
  if (peer.uid) return *peer.uid;
  return peer.transport == Peer::Transport::kRemote ? -1 : -2;
}

}  // namespace flamed::api
