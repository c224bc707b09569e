// SPDX-License-Identifier: Apache-2.0
//
// Who has a TCP port that flamed wanted: for an error message that says whom to ask. Any thread.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flamed::api {

/// One row of /proc/net/tcp or tcp6 in state LISTEN.
struct ListenRow {
  std::string
      address;  ///< as the file writes it: 8 or 32 hex digits, each 4 bytes as a number of the host's byte order
  std::uint16_t port = 0;
  std::uint64_t inode = 0;
};

/// Pure. Rows of other states, and what is not a row, are skipped. Columns: Documentation/networking/proc_net_tcp.rst.
std::vector<ListenRow> parse_listening_sockets(std::string_view proc_net_tcp);

/// How /proc/net/tcp and tcp6 write the address; empty for other families.
std::string proc_net_address(const sockaddr_storage& address);

/// Would a socket bound to `wanted` get in the way of one that listens on `taken`? The unspecified address does so with
/// all, and an IPv6 socket on it takes IPv4 too unless it says otherwise.
bool addresses_conflict(std::string_view wanted, std::string_view taken);

struct PortOwner {
  std::int32_t pid = 0;
  std::string comm;
};

/// Empty where nobody is found: not running as root, the owner's descriptors cannot be seen.
std::optional<PortOwner> find_port_owner(std::uint16_t port, std::string_view wanted_address,
                                         const std::string& proc_root = "/proc");

}  // namespace flamed::api
