// SPDX-License-Identifier: Apache-2.0
//
// SocketOwners: who owns the client's end of a TCP connection within this host. The kernel knows, and tells everybody
// asks by netlink (sock_diag(7)): no rights are needed.
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

/// One connection, as the side sees it that accepted it.
struct TcpEnds {
  IpEndpoint client;
  IpEndpoint server;
};

class SocketOwners {
 public:
  virtual ~SocketOwners() = default;
  /// The user who made the client's socket, by the numbers of flamed's own user namespace. Empty where the kernel does
  /// not know, no longer knows, or does not say.
  virtual std::optional<uid_t> owner_of(const TcpEnds& ends) = 0;
};

/// A socket, as the kernel describes it.
struct OwnedSocket {
  uid_t uid = 0;
  std::uint64_t cookie = 0;  ///< the kernel's own number for it, which never comes back

  friend bool operator==(const OwnedSocket&, const OwnedSocket&) = default;
};

/// The question for the client's socket: an nlmsghdr and an inet_diag_req_v2. Pure. `interface` is that by which its
/// packets come, 0: none. The kernel then passes over sockets that are bound to another one (SO_BINDTODEVICE).
std::vector<std::byte> encode_owner_question(const TcpEnds& ends, std::uint32_t interface, std::uint32_t sequence);

/// The socket in the kernel's answer. Pure. Empty unless it has exactly these ends, a process holds it and it has been
/// connected: the kernel also answers with a listening socket on the client's port or with one that is only trying to
/// connect from it, and gives root as the owner of sockets that nobody holds any more (closed, TIME_WAIT).
std::optional<OwnedSocket> decode_owner(std::span<const std::byte> answer, const TcpEnds& ends, std::uint32_t sequence);

/// One thread.
///
/// A user can have a socket with the same ends as somebody else's, by binding one of them to `lo`: the kernel then
/// finds one or the other. So it is asked in both ways, and unless both find the same socket nobody is known.
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
