// SPDX-License-Identifier: Apache-2.0
#include "api/socket/listen_address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "api/socket/ip_endpoint.h"

namespace flamed::api {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

Result<ListenAddress> parse_unix(std::string_view path) {
  if (!path.starts_with('/') || path.ends_with('/')) return Error("not an absolute path of a socket: unix:/PATH");
  if (path.find('\0') != std::string_view::npos) return Error("a NUL in the path");
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Error("the path is longer than " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes");
  }
  ListenAddress address;
  address.host.clear();
  address.port = 0;
  address.path = std::string(path);
  return address;
}

std::optional<IpEndpoint> numeric(const std::string& host) {
  sockaddr_storage storage{};
  sockaddr_in ipv4{};
  sockaddr_in6 ipv6{};
  if (::inet_pton(AF_INET, host.c_str(), &ipv4.sin_addr) == 1) {
    ipv4.sin_family = AF_INET;
    std::memcpy(&storage, &ipv4, sizeof ipv4);
  } else if (::inet_pton(AF_INET6, host.c_str(), &ipv6.sin6_addr) == 1) {
    ipv6.sin6_family = AF_INET6;
    std::memcpy(&storage, &ipv6, sizeof ipv6);
  }
  return ip_endpoint(storage);
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) return parse_unix(text.substr(kUnixPrefix.size()));
  const Error error("neither HOST:PORT nor unix:/PATH");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return error;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos && !host.starts_with('[')) {
    return Error("an IPv6 address must stand in brackets");
  }
  if (host.find_first_of(std::string_view("[] \t\n\0", 6)) != std::string_view::npos) return error;
  ListenAddress address;
  const auto [end, parse_error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (host.empty() || parse_error != std::errc{} || end != port.data() + port.size() || address.port == 0) return error;
  address.host = std::string(host);
  return address;
}

std::string to_string(const ListenAddress& address) {
  if (address.is_unix()) return std::string(kUnixPrefix) + address.path;
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

bool is_beyond_loopback(const ListenAddress& address) {
  if (address.is_unix()) return false;
  const std::optional<IpEndpoint> endpoint = numeric(address.host);
  return endpoint && !is_loopback(*endpoint);
}

Error beyond_loopback(std::string_view address) {
  return Error("refusing to listen on " + std::string(address) +
                   ": other hosts could ask what runs here. Give a file with a token that they must know (token_file), "
                   "or listen on 127.0.0.1, [::1] or a Unix socket",
               EPERM);
}

}  // namespace flamed::api
