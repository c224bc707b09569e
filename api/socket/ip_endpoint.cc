// SPDX-License-Identifier: Apache-2.0
#include "api/socket/ip_endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace flamed::api {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

std::optional<IpEndpoint> ip_endpoint(const sockaddr_storage& address) {
  IpEndpoint endpoint;
  if (address.ss_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, &address, sizeof ipv4);
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), endpoint.address.begin());
    std::memcpy(endpoint.address.data() + kMappedPrefix.size(), &ipv4.sin_addr, sizeof ipv4.sin_addr);
    endpoint.port = ntohs(ipv4.sin_port);
    return endpoint;
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, &address, sizeof ipv6);
    std::memcpy(endpoint.address.data(), &ipv6.sin6_addr, sizeof ipv6.sin6_addr);
    endpoint.port = ntohs(ipv6.sin6_port);
    return endpoint;
  }
  return std::nullopt;
}

bool is_ipv4(const IpEndpoint& endpoint) {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), endpoint.address.begin());
}

bool is_loopback(const IpEndpoint& endpoint) {
  if (is_ipv4(endpoint)) return endpoint.address[kMappedPrefix.size()] == 127;
  std::array<std::uint8_t, 16> one{};
  one.back() = 1;
  return endpoint.address == one;
}

std::string to_string(const IpEndpoint& endpoint) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool ipv4 = is_ipv4(endpoint);
  const std::uint8_t* const bytes = endpoint.address.data() + (ipv4 ? kMappedPrefix.size() : 0);
  ::inet_ntop(ipv4 ? AF_INET : AF_INET6, bytes, text.data(), text.size());
  const std::string address(text.data());
  return (ipv4 ? address : "[" + address + "]") + ":" + std::to_string(endpoint.port);
}

}  // namespace flamed::api
