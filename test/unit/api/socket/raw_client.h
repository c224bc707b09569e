// SPDX-License-Identifier: Apache-2.0
//
// RawClient: sends and receives any bytes at any time, unlike a well-behaved client.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/handle.h"
#include "test/catch.h"

namespace flamed::api {

class RawClient {
 public:
  /// `receive_buffer_bytes`: how much of an answer the kernel buffers for a client that does not read; 0: the default.
  explicit RawClient(std::uint16_t port, int receive_buffer_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer_bytes > 0) {
      REQUIRE(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes) ==
              0);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    limit_patience();
  }

  explicit RawClient(const std::string& unix_path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, unix_path.c_str(), unix_path.size());
    REQUIRE(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    limit_patience();
  }

  RawClient& send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) break;  // the server may have answered and closed already
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return *this;
  }

  void hang_up() { socket_.reset(); }

  /// Reads until the server closes.
  std::string rest() {
    std::string all;
    char piece[4096];
    ssize_t count = 0;
    while ((count = ::recv(socket_.get(), piece, sizeof piece, 0)) > 0)
      all.append(piece, static_cast<std::size_t>(count));
    return all;
  }

  /// Reads this many bytes, or fewer if the server closes.
  std::string receive(std::size_t bytes) {
    std::string all(bytes, '\0');
    std::size_t received = 0;
    while (received < bytes) {
      const ssize_t count = ::recv(socket_.get(), all.data() + received, bytes - received, 0);
      if (count <= 0) break;
      received += static_cast<std::size_t>(count);
    }
    all.resize(received);
    return all;
  }

  /// Reads one answer with a Content-Length, from a connection that stays open.
  std::string answer() {
    std::string all;
    char byte = 0;
    while (all.find("\r\n\r\n") == std::string::npos && ::recv(socket_.get(), &byte, 1, 0) == 1) all += byte;
    const std::size_t at = all.find("Content-Length: ");
    REQUIRE(at != std::string::npos);
    return all + receive(std::stoul(all.substr(at + 16)));
  }

  /// Waits up to this time: is there something to read, or has the server closed?
  [[nodiscard]] bool hears(std::chrono::milliseconds patience) const {
    pollfd readable{socket_.get(), POLLIN, 0};
    return ::poll(&readable, 1, static_cast<int>(patience.count())) == 1;
  }
  /// Does the server close without sending anything?
  [[nodiscard]] bool is_hung_up() const {
    char byte = 0;
    const ssize_t count = ::recv(socket_.get(), &byte, 1, MSG_PEEK);
    return count == 0 || (count < 0 && errno == ECONNRESET);
  }

 private:
  void limit_patience() const {
    const timeval limit{10, 0};
    REQUIRE(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  }

  Fd socket_;
};

}  // namespace flamed::api
