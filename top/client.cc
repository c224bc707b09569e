// SPDX-License-Identifier: Apache-2.0
#include "top/client.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/handle.h"

namespace flamed::top {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr const char* kServiceSocket = "/run/flamed/flamed.sock";
constexpr const char* kUsualPort = "127.0.0.1:9090";
/// An answer takes 20 s at most, and is read whole.
constexpr timeval kPatience{30, 0};
constexpr std::size_t kMostAnswerBytes = std::size_t{64} << 20;

Result<Fd> connect_to_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error("the path " + path + " is too long for a socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return Error::from_errno("socket()");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Error::from_errno("cannot connect to " + path);
  }
  return fd;
}

Result<Fd> connect_to_host(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return Error("\"" + address + "\" is no address: write HOST:PORT or unix:/PATH");
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found); error != 0) {
    return Error("cannot find " + address + ": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  Error last("cannot connect to " + address);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Fd fd(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, 0));
    if (fd && ::connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) return fd;
    last = Error::from_errno("cannot connect to " + address);
  }
  return last;
}

}  // namespace

Result<Answer> parse_answer(std::string_view bytes) {
  const std::size_t head = bytes.find("\r\n\r\n");
  Answer answer;
  constexpr std::size_t kStatusAt = 9;  // after "HTTP/1.1 "
  if (!bytes.starts_with("HTTP/1.") || head == std::string_view::npos || head < kStatusAt + 3) {
    return Error("what answers does not speak HTTP");
  }
  const char* const status = bytes.data() + kStatusAt;
  if (std::from_chars(status, status + 3, answer.status).ptr != status + 3) {
    return Error("what answers does not speak HTTP");
  }
  answer.body = bytes.substr(head + 4);
  return answer;
}

Result<Answer> Client::get(std::string_view target) const {
  const bool is_unix = address_.starts_with(kUnix);
  Result<Fd> fd = is_unix ? connect_to_path(address_.substr(kUnix.size())) : connect_to_host(address_);
  if (!fd) return std::move(fd).error().with_context("flamed is not there");
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    ::setsockopt(fd->get(), SOL_SOCKET, option, &kPatience, sizeof kPatience);
  }
  // Version 1.0: the answer comes in one piece, and its end is the connection's.
  std::string request =
      "GET " + std::string(target) + " HTTP/1.0\r\nHost: " + (is_unix ? "localhost" : address_) + "\r\n\r\n";
  for (std::string_view rest = request; !rest.empty();) {
    const ssize_t sent = ::send(fd->get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Error::from_errno("cannot ask flamed at " + address_);
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string bytes;
  std::array<char, 65536> piece;
  while (true) {
    const ssize_t got = ::recv(fd->get(), piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno("no answer from flamed at " + address_);
    if (got == 0) return parse_answer(bytes);
    bytes.append(piece.data(), static_cast<std::size_t>(got));
    if (bytes.size() > kMostAnswerBytes) return Error("the answer of flamed at " + address_ + " is too long");
  }
}

std::string usual_address() {
  return ::access(kServiceSocket, W_OK) == 0 ? std::string(kUnix) + kServiceSocket : kUsualPort;
}

}  // namespace flamed::top
