// SPDX-License-Identifier: Apache-2.0
#include "api/peer_lookup.h"

#include <sys/socket.h>

#include <optional>

#include "api/ip_endpoint.h"

namespace flamed::api {
namespace {

Peer unix_peer(int socket) {
  Peer peer{Peer::Transport::kUnix, std::nullopt};
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
      credentials.uid != static_cast<uid_t>(-1)) {
    peer.uid = credentials.uid;
  }
  return peer;
}

using NameOf = int (*)(int, sockaddr*, socklen_t*);

std::optional<IpEndpoint> end_of(int socket, NameOf name_of) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (name_of(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return std::nullopt;
  return ip_endpoint(address);
}

}  // namespace

Peer look_up_peer(int socket, SocketOwners* owners) {
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return {};
  if (domain == AF_UNIX) return unix_peer(socket);

  const std::optional<IpEndpoint> client = end_of(socket, ::getpeername);
  const std::optional<IpEndpoint> server = end_of(socket, ::getsockname);
  if (!client || !server || !is_loopback(*client)) return {};
  return {Peer::Transport::kLoopback, owners == nullptr ? std::nullopt : owners->owner_of({*client, *server})};
}

}  // namespace flamed::api
