// SPDX-License-Identifier: Apache-2.0
#include "api/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace flamed::api {
namespace {

constexpr std::chrono::seconds kLingerLimit{1};
constexpr std::size_t kLingerBytes = 1U << 20;

}  // namespace

Connection::Connection(Fd socket, int stop, int pressure)
    : socket_(std::move(socket)), stop_(stop), pressure_(pressure) {
  // An answer is written in two pieces, headers and body. Nagle would hold the second back for the client's delayed
  // ACK.
  const int on = 1;
  static_cast<void>(::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

Connection::Received Connection::receive() {
  // What follows the last request's head was sent ahead by a client that pipelines.
  buffer_.erase(0, head_.end);
  head_ = {};
  if (buffer_.empty()) {
    const auto start = Clock::now();
    Event event = wait(POLLIN, start + kGrace, false);
    if (event == Event::kTime) event = wait(POLLIN, start + kIdleLimit, true);
    if (event != Event::kReady) return Received::kNothing;
  }
  const auto deadline = Clock::now() + kReceiveLimit;
  while (true) {
    head_ = scan_request_head(buffer_);
    if (head_.state == HeadState::kComplete) return Received::kRequest;
    if (head_.state != HeadState::kIncomplete) return Received::kRefused;
    switch (wait(POLLIN, deadline, false)) {
      case Event::kReady:
        break;
      case Event::kTime:
        return buffer_.empty() ? Received::kNothing : Received::kTimeout;
      case Event::kStop:
      case Event::kPressure:
        return Received::kNothing;
    }
    const long count = read_more();
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return Received::kNothing;
  }
}

std::string_view Connection::head() const {
  const std::string_view all(buffer_);
  if (head_.state != HeadState::kComplete) return all;
  return all.substr(head_.begin, head_.end - head_.begin);
}

bool Connection::send(std::string_view bytes) {
  const auto limit = Clock::now() + kTransmitLimit;
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EAGAIN) {
      if (wait(POLLOUT, std::min(limit, Clock::now() + kStallLimit), false) != Event::kReady) return false;
    } else if (count == 0 || errno != EINTR) {
      return false;
    }
    if (Clock::now() > limit) return false;
  }
  return true;
}

void Connection::finish_refused() {
  static_cast<void>(::shutdown(socket_.get(), SHUT_WR));
  const auto deadline = Clock::now() + kLingerLimit;
  std::size_t discarded = 0;
  while (discarded < kLingerBytes && wait(POLLIN, deadline, false) == Event::kReady) {
    buffer_.clear();
    const long count = read_more();
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return;
    if (count > 0) discarded += static_cast<std::size_t>(count);
  }
}

Connection::Event Connection::wait(short events, Clock::time_point deadline, bool watch_pressure) const {
  while (true) {
    std::array<pollfd, 3> watched{{{socket_.get(), events, 0}, {stop_, POLLIN, 0}, {pressure_, POLLIN, 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int count = ::poll(watched.data(), watch_pressure ? 3 : 2, static_cast<int>(std::max<long>(left, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Event::kTime;
    if (watched[1].revents != 0) return Event::kStop;
    if (watched[0].revents != 0) return Event::kReady;
    return Event::kPressure;
  }
}

long Connection::read_more() {
  // At most what the limits allow, and a little more to see that they are passed.
  std::array<char, 4096> piece;
  const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), 0);
  if (count > 0) buffer_.append(piece.data(), static_cast<std::size_t>(count));
  return count;
}

}  // namespace flamed::api
