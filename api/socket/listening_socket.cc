// SPDX-License-Identifier: Apache-2.0
#include "api/socket/listening_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

namespace flamed::api {
namespace {

/// Connections that the kernel completes before accept() takes them.
constexpr int kBacklog = 128;
constexpr std::uint16_t kDefaultPort = 9090;

Error port_taken(const ListenAddress& wanted) {
  const std::string port = std::to_string(wanted.port);
  std::string message = "cannot listen on " + to_string(wanted) + ": it is taken ('ss -ltnp sport = :" + port +
                        "', as root, shows by which process)";
  if (wanted.port == kDefaultPort) message += "; 9090 is also the default port of Prometheus and Cockpit";
  ListenAddress other = wanted;
  other.port = static_cast<std::uint16_t>(wanted.port < 65535 ? wanted.port + 1 : kDefaultPort + 1);
  message += "; choose another with --listen " + to_string(other);
  return Error(std::move(message), EADDRINUSE);
}

Result<sockaddr_storage> own_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return Error::from_errno("cannot read the address of a listening socket");
  }
  return address;
}

std::string unix_name(const sockaddr_storage& storage) {
  sockaddr_un address{};
  std::memcpy(&address, &storage, sizeof address);
  const std::size_t length = ::strnlen(address.sun_path, sizeof address.sun_path);
  return "unix:" + std::string(address.sun_path, length);
}

Result<Fd> open_tcp(const ListenAddress& wanted, Reach reach) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const int failed = ::getaddrinfo(wanted.host.c_str(), std::to_string(wanted.port).c_str(), &hints, &raw);
  const std::string what = "cannot listen on " + to_string(wanted);
  if (failed != 0) {
    return Error(what + ": " + ::gai_strerror(failed) +
                 "; give an address of this host, as in --listen 127.0.0.1:9090");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(raw, &::freeaddrinfo);

  // A name may have several addresses. The first one that can be bound is used.
  Error error(what + ": the name has no address");
  for (const addrinfo* info = addresses.get(); info != nullptr; info = info->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, info->ai_addr, info->ai_addrlen);
    const std::optional<IpEndpoint> endpoint = ip_endpoint(address);
    if (!endpoint) continue;
    if (reach == Reach::kThisHost && !is_loopback(*endpoint)) return beyond_loopback(to_string(wanted));
    Fd socket(::socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
      error = Error::from_errno(what);
      continue;
    }
    // Allows a restart to bind while old connections are in TIME_WAIT. On Linux it does not allow two listening
    // sockets.
    const int on = 1;
    static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    if (::bind(socket.get(), info->ai_addr, info->ai_addrlen) == 0 && ::listen(socket.get(), kBacklog) == 0) {
      return socket;
    }
    const int code = errno;
    if (code == EADDRINUSE) return port_taken(wanted);
    error = Error::from_errno(what, code);
    if (code == EACCES) {
      ListenAddress other = wanted;
      other.port = kDefaultPort;
      error = Error(error.message() + "; ports below 1024 need CAP_NET_BIND_SERVICE, choose another with --listen " +
                        to_string(other),
                    code);
    }
    // From a control group or a seccomp filter: the kernel itself does not refuse with EPERM.
    if (code == EPERM) {
      error = Error(error.message() + "; flamed's unit allows port " + std::to_string(kDefaultPort) +
                        " alone: `systemctl edit flamed`, with the lines [Service] and SocketBindAllow=tcp:" +
                        std::to_string(wanted.port),
                    code);
    }
  }
  return error;
}

bool is_listening(int socket) {
  int listening = 0;
  int type = 0;
  socklen_t size = sizeof listening;
  if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) return false;
  size = sizeof type;
  return ::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && listening != 0 && type == SOCK_STREAM;
}

}  // namespace

Result<ListeningSocket> ListeningSocket::open(const ListenAddress& address, Reach reach) {
  if (!address.is_unix()) {
    Result<Fd> socket = open_tcp(address, reach);
    if (!socket) return std::move(socket).error();
    const Result<sockaddr_storage> own = own_address(socket->get());
    if (!own) return own.error();
    ListenAddress bound = address;
    const std::optional<IpEndpoint> endpoint = ip_endpoint(*own);
    if (endpoint) bound.port = endpoint->port;
    return ListeningSocket(std::move(*socket), endpoint, to_string(bound));
  }
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("cannot listen on " + to_string(address));
  Result<UnixSocketPath> path = UnixSocketPath::bind(socket.get(), address.path);
  if (!path) return std::move(path).error();
  if (::listen(socket.get(), kBacklog) != 0) return Error::from_errno("cannot listen on " + to_string(address));
  ListeningSocket listening(std::move(socket), std::nullopt, to_string(address));
  listening.path_.emplace(std::move(*path));
  return listening;
}

Result<ListeningSocket> ListeningSocket::adopt(Fd socket, Reach reach) {
  const std::string what = "cannot take over descriptor " + std::to_string(socket.get()) + " from the service manager";
  if (!is_listening(socket.get())) {
    return Error(what + ": it is not a stream socket that listens; check ListenStream= in the socket unit", EINVAL);
  }
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return Error::from_errno(what);
  }
  const Result<sockaddr_storage> own = own_address(socket.get());
  if (!own) return own.error();
  if (own->ss_family == AF_UNIX) return ListeningSocket(std::move(socket), std::nullopt, unix_name(*own));
  const std::optional<IpEndpoint> endpoint = ip_endpoint(*own);
  if (!endpoint) return Error(what + ": neither TCP nor a Unix socket", EINVAL);
  if (reach == Reach::kThisHost && !is_loopback(*endpoint)) return beyond_loopback(to_string(*endpoint));
  return ListeningSocket(std::move(socket), endpoint, to_string(*endpoint));
}

}  // namespace flamed::api
