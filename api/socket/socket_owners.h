// SPDX-License-Identifier: Apache-2.0
//
// SocketOwners: who owns the client's end of a TCP connection within this host. The kernel answers this by netlink
// (sock_diag(7)), without special rights.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/socket/ip_endpoint.h"
#include "base/handle.h"
#include "base/result.h"

namespace flamed::api {

/// One connection, as seen from the accepting side.
struct TcpEnds {
  IpEndpoint client;
  IpEndpoint server;
};

class SocketOwners {
 public:
  virtual ~SocketOwners() = default;
  /// The user who created the client's socket, in flamed's own user namespace. Empty if the kernel does not know, no
  /// longer knows, or does not say.
  virtual std::optional<uid_t> owner_of(const TcpEnds& ends) = 0;
};

/// A socket, as the kernel describes it.
struct OwnedSocket {
  uid_t uid = 0;
  std::uint64_t cookie = 0;  ///< the kernel's own number for it, never reused

  friend bool operator==(const OwnedSocket&, const OwnedSocket&) = default;
};

/// The request for the client's socket: an nlmsghdr and an inet_diag_req_v2. Pure. `interface` is the one that its
/// packets arrive on, 0: none. The kernel then skips sockets that are bound to another one (SO_BINDTODEVICE).
std::vector<std::byte> encode_owner_question(const TcpEnds& ends, std::uint32_t interface, std::uint32_t sequence);

/// The socket in the kernel's answer. Pure. Empty unless it has exactly these ends, is open in a process and was
/// connected: the kernel also answers with a listening socket on the client's port or with one that is still connecting
/// from it, and reports root as the owner of sockets without a process (closed, TIME_WAIT).
std::optional<OwnedSocket> decode_owner(std::span<const std::byte> answer, const TcpEnds& ends, std::uint32_t sequence);

/// One thread.
///
/// A user can create a socket with the same ends as another user's, by binding one of them to `lo`: the kernel then
/// finds one or the other. So it is asked in both ways, and unless both find the same socket the owner is unknown.
class KernelSocketOwners final : public SocketOwners {
 public:
  static Result<KernelSocketOwners> open();
  std::optional<uid_t> owner_of(const TcpEnds& ends) override;

 private:
  std::optional<OwnedSocket> find(const TcpEnds& ends, std::uint32_t interface);

  explicit KernelSocketOwners(Fd netlink) : netlink_(std::move(netlink)) {}

  Fd netlink_;
  std::uint32_t sequence_ = 0;
};

Result<std::unique_ptr<SocketOwners>> open_kernel_socket_owners();

}  // namespace flamed::api
