// SPDX-License-Identifier: Apache-2.0
#include "api/socket/peer_lookup.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <optional>
#include <utility>

#include "api/socket/ip_endpoint.h"

namespace flamed::api {
namespace {

constexpr const char* kConsequence =
    "; so every client over TCP is an unknown user and sees only what is open to all, while Unix sockets (--listen "
    "unix:PATH) still tell";

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

/// Both ends according to the kernel; empty if it is not a TCP connection any more.
std::optional<TcpEnds> ends_of(int socket) {
  const std::optional<IpEndpoint> client = end_of(socket, ::getpeername);
  const std::optional<IpEndpoint> server = end_of(socket, ::getsockname);
  if (!client || !server) return std::nullopt;
  return TcpEnds{*client, *server};
}

/// A reset connection is in no table any more.
bool is_connected(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state != TCP_CLOSE;
}

}  // namespace

Peer look_up_peer(int socket, SocketOwners* owners) {
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return {};
  if (domain == AF_UNIX) return unix_peer(socket);

  const std::optional<TcpEnds> ends = ends_of(socket);
  if (!ends || !is_loopback(ends->client)) return {};
  return {Peer::Transport::kLoopback, owners == nullptr ? std::nullopt : owners->owner_of(*ends)};
}

PeerLookup::PeerLookup(Open open) : open_(std::move(open)) { open_owners(); }

Peer PeerLookup::look_up(int socket) {
  Peer peer = look_up_peer(socket, owners_.get());
  if (peer.transport != Peer::Transport::kLoopback) return peer;
  if (owners_ == nullptr) {
    open_owners();
    if (owners_ != nullptr) peer = look_up_peer(socket, owners_.get());
  }
  if (peer.uid) {
    set_problem({});
    return peer;
  }
  ++unknown_;
  if (owners_ == nullptr) return peer;
  if (knows_own_end(socket)) {
    set_problem({});
  } else if (is_connected(socket)) {
    set_problem(std::string("the kernel does not say who owns TCP connections, not even flamed's own") + kConsequence +
                ": load its module tcp_diag (modprobe tcp_diag)");
  }
  return peer;
}

Peer PeerLookup::look_up_again(int socket, const Peer& accepted) {
  // A Unix socket's peer does not change, and an unknown one has no rights to lose.
  if (accepted.transport != Peer::Transport::kLoopback || !accepted.uid) return accepted;
  const Peer now = look_up_peer(socket, owners_.get());
  if (now == accepted) return accepted;
  ++unknown_;
  return {accepted.transport, std::nullopt};
}

Status PeerLookup::state() const {
  const std::lock_guard lock(mutex_);
  if (problem_.empty()) return {};
  return Error(problem_);
}

void PeerLookup::open_owners() {
  Result<std::unique_ptr<SocketOwners>> opened = open_();
  if (opened) {
    owners_ = std::move(*opened);
    set_problem({});
  } else {
    set_problem(opened.error().message() + kConsequence +
                ": allow AF_NETLINK sockets (RestrictAddressFamilies= of the unit, the container's seccomp profile)");
  }
}

bool PeerLookup::knows_own_end(int socket) {
  const std::optional<TcpEnds> ends = ends_of(socket);
  return ends && owners_->owner_of({ends->server, ends->client}).has_value();
}

void PeerLookup::set_problem(std::string problem) {
  const std::lock_guard lock(mutex_);
  problem_ = std::move(problem);
}

}  // namespace flamed::api
