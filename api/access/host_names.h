// SPDX-License-Identifier: Apache-2.0
//
// HostNames: the host names that requests may use. A browser sends the name that it looked up in the header Host. A
// foreign name means that a site has pointed its own name here (DNS rebinding), so that its page can read the answers.
// Filled when the server begins to listen, constant from then on; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flamed::api {

class HostNames {
 public:
  /// For a TCP socket that listens on `host`, as the configuration writes it (an IPv6 address without brackets), and
  /// `port`: this name; for an address of loopback also "localhost"; for the unspecified address "localhost" and every
  /// numeric address, which no name server can redirect.
  void add(std::string_view host, std::uint16_t port);

  /// Whether a request over TCP may have this header Host: one of the names, with its port unless that is 80.
  [[nodiscard]] bool has(std::string_view header) const;
  /// "localhost:9090, 127.0.0.1:9090": for people.
  [[nodiscard]] std::string list() const;

 private:
  std::vector<std::string> names_;             ///< lower case, with the port
  std::vector<std::uint16_t> any_address_at_;  ///< ports
};

/// Whether a request over a Unix socket may have this header Host: none, or "localhost" or an address of loopback, with
/// any port. A browser gets there only if its user forwards a port of his own (ssh -L 8080:/run/flamed/flamed.sock).
bool is_unix_host(std::string_view header);

}  // namespace flamed::api
