// SPDX-License-Identifier: Apache-2.0
#include "api/access/host_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace flamed::api {
namespace {

constexpr std::uint16_t kHttpPort = 80;
constexpr std::string_view kLocalhost = "localhost";

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

struct HostAndPort {
  std::string host;  ///< without brackets
  std::uint16_t port = 0;
};

/// "name:port", "1.2.3.4:port", "[::1]:port"; the port may be missing.
std::optional<HostAndPort> split(std::string_view header) {
  HostAndPort parts;
  std::string_view rest;
  if (header.starts_with('[')) {
    const std::size_t end = header.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    parts.host = lower_case(header.substr(1, end - 1));
    if (parts.host.find(':') == std::string::npos) return std::nullopt;
    rest = header.substr(end + 1);
  } else {
    const std::size_t colon = std::min(header.find(':'), header.size());
    parts.host = lower_case(header.substr(0, colon));
    rest = header.substr(colon);
  }
  if (rest.empty()) {
    parts.port = kHttpPort;
    return parts;
  }
  if (rest.front() != ':') return std::nullopt;
  rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), parts.port);
  if (error != std::errc{} || end != rest.data() + rest.size() || parts.port == 0) return std::nullopt;
  return parts;
}

enum class Kind : std::uint8_t { kName, kAddress, kLoopback, kUnspecified };

Kind kind_of(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    const std::uint32_t address = ntohl(v4.s_addr);
    if (address == INADDR_ANY) return Kind::kUnspecified;
    return address >> 24 == IN_LOOPBACKNET ? Kind::kLoopback : Kind::kAddress;
  }
  in6_addr v6{};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    if (IN6_IS_ADDR_UNSPECIFIED(&v6)) return Kind::kUnspecified;
    return IN6_IS_ADDR_LOOPBACK(&v6) ? Kind::kLoopback : Kind::kAddress;
  }
  return host.empty() ? Kind::kUnspecified : Kind::kName;
}

std::string endpoint(std::string_view host, std::uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string_view::npos;
  std::string text = is_ipv6 ? "[" + std::string(host) + "]" : std::string(host);
  return text + ":" + std::to_string(port);
}

}  // namespace

void HostNames::add(std::string_view host, std::uint16_t port) {
  const auto add_name = [&](std::string_view name) {
    std::string text = endpoint(name, port);
    if (std::find(names_.begin(), names_.end(), text) == names_.end()) names_.push_back(std::move(text));
  };
  const std::string lower = lower_case(host);
  const Kind kind = kind_of(lower);
  if (kind == Kind::kLoopback || kind == Kind::kUnspecified) add_name(kLocalhost);
  if (kind == Kind::kUnspecified) {
    any_address_at_.push_back(port);
  } else {
    add_name(lower);
  }
}

bool HostNames::has(std::string_view header) const {
  const std::optional<HostAndPort> asked = split(header);
  if (!asked) return false;
  if (std::find(names_.begin(), names_.end(), endpoint(asked->host, asked->port)) != names_.end()) return true;
  const Kind kind = kind_of(asked->host);
  const bool is_address = kind == Kind::kAddress || kind == Kind::kLoopback;
  return is_address && std::find(any_address_at_.begin(), any_address_at_.end(), asked->port) != any_address_at_.end();
}

std::string HostNames::list() const {
  std::string text;
  for (const std::string& name : names_) text += (text.empty() ? "" : ", ") + name;
  if (!any_address_at_.empty()) text += " and this host's addresses";
  return text;
}

bool is_unix_host(std::string_view header) {
  if (header.empty()) return true;
  const std::optional<HostAndPort> asked = split(header);
  return asked && (asked->host == kLocalhost || kind_of(asked->host) == Kind::kLoopback);
}

}  // namespace flamed::api
