// SPDX-License-Identifier: Apache-2.0
#include "api/listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "api/port_owner.h"

namespace flamed::api {
namespace {

/// Connections that the kernel completes before accept() takes them.
constexpr int kBacklog = 64;
constexpr std::uint16_t kDefaultPort = 9090;

/// "127.0.0.1:9090", "[::1]:9090".
std::string endpoint(const std::string& host, std::uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Error port_taken(const std::string& host, std::uint16_t port, const sockaddr_storage& address) {
  std::string message = "cannot listen on " + endpoint(host, port) + ": it is taken";
  if (const auto owner = find_port_owner(port, proc_net_address(address))) {
    message += " by " + owner->comm + " (pid " + std::to_string(owner->pid) + ")";
  } else {
    message += " by a process that cannot be seen from here";
  }
  if (port == kDefaultPort) message += "; 9090 is also the default port of Prometheus and Cockpit";
  const auto other = static_cast<std::uint16_t>(port < 65535 ? port + 1 : kDefaultPort + 1);
  message += "; choose another with --listen " + endpoint(host, other);
  return Error(std::move(message), EADDRINUSE);
}

}  // namespace

Result<Fd> listen_on(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const int failed = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &raw);
  const std::string what = "cannot listen on " + endpoint(host, port);
  if (failed != 0) {
    return Error(what + ": " + ::gai_strerror(failed) +
                 "; give an address of this host, as in --listen 127.0.0.1:9090");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(raw, &::freeaddrinfo);

  // A name may stand for several addresses. The first that can be had is ours.
  Error error(what + ": the name has no address");
  for (const addrinfo* info = addresses.get(); info != nullptr; info = info->ai_next) {
    Fd socket(::socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
      error = Error::from_errno(what);
      continue;
    }
    // Lets a restart bind while old connections are in TIME_WAIT. On Linux it does not let two sockets listen.
    const int on = 1;
    static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    if (::bind(socket.get(), info->ai_addr, info->ai_addrlen) == 0 && ::listen(socket.get(), kBacklog) == 0) {
      return socket;
    }
    const int code = errno;
    if (code == EADDRINUSE) {
      sockaddr_storage address{};
      std::memcpy(&address, info->ai_addr, info->ai_addrlen);
      return port_taken(host, port, address);
    }
    error = Error::from_errno(what, code);
    if (code == EACCES) {
      error = Error(error.message() + "; ports below 1024 need CAP_NET_BIND_SERVICE, choose another with --listen " +
                        endpoint(host, kDefaultPort),
                    code);
    }
  }
  return error;
}

Result<std::uint16_t> port_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return Error::from_errno("cannot read the port of the listening socket");
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, &address, sizeof ipv6);
    return ntohs(ipv6.sin6_port);
  }
  sockaddr_in ipv4{};
  std::memcpy(&ipv4, &address, sizeof ipv4);
  return ntohs(ipv4.sin_port);
}

}  // namespace flamed::api
