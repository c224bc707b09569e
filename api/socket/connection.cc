// SPDX-License-Identifier: Apache-2.0
#include "api/socket/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace flamed::api {
namespace {

/// The dropped part of a refused body: a client that sends more will not read the answer.
constexpr std::size_t kMostDroppedBytes = 1U << 20;
constexpr std::size_t kPieceBytes = 4096;

/// The bytes after the first `done`.
iovec part_from(const SharedBytes& bytes, std::size_t done) {
  const std::string_view rest = bytes.view().substr(std::min(done, bytes.size()));
  return {const_cast<char*>(rest.data()), rest.size()};  // NOLINT(cppcoreguidelines-pro-type-const-cast): only read
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Connection::Connection(Fd socket, Peer peer, const ConnectionLimits& limits, Clock::time_point now)
    : socket_(std::move(socket)),
      peer_(peer),
      limits_(&limits),
      reader_(limits.body),
      since_(now),
      deadline_(now + limits.idle) {
  // Otherwise the last piece of an answer waits for the client's delayed ACK. No effect on Unix sockets.
  const int on = 1;
  static_cast<void>(::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

std::uint32_t Connection::poll_events() const {
  switch (stage_) {
    case Stage::kReceiving:
    case Stage::kLingering:
      return EPOLLIN | EPOLLRDHUP;
    case Stage::kWaiting:  // early requests may wait; only a disconnect matters
      return EPOLLRDHUP;
    case Stage::kSending:
      return EPOLLOUT;
    case Stage::kAsking:
      break;
  }
  return 0;
}

void Connection::enter(Stage stage, Clock::time_point now, Clock::time_point deadline) {
  stage_ = stage;
  since_ = now;
  deadline_ = deadline;
}

Connection::Event Connection::ready(Clock::time_point now) {
  switch (stage_) {
    case Stage::kReceiving:
      return receive(now);
    case Stage::kSending:
      return send_on(now);
    case Stage::kLingering:
      return drop_input();
    case Stage::kWaiting:
      return Event::kClosed;
    case Stage::kAsking:
      break;
  }
  return Event::kNone;
}

Connection::Event Connection::expired(Clock::time_point now) {
  switch (stage_) {
    case Stage::kReceiving:
      return reader_.empty() ? Event::kClosed : Event::kTimeout;
    case Stage::kWaiting:
      enter(Stage::kAsking, now, Clock::time_point::max());
      return Event::kDue;
    case Stage::kSending:
    case Stage::kLingering:
      return Event::kClosed;
    case Stage::kAsking:
      break;
  }
  return Event::kNone;
}

Connection::Event Connection::receive(Clock::time_point now) {
  while (reader_.state() == HeadState::kIncomplete) {
    std::array<char, kPieceBytes> piece;
    const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && would_block()) return Event::kNone;
    if (count <= 0) return Event::kClosed;
    if (reader_.empty()) deadline_ = now + limits_->receive;
    reader_.append({piece.data(), static_cast<std::size_t>(count)});
  }
  if (reader_.state() != HeadState::kComplete) return Event::kRefused;
  ++requests_;
  enter(Stage::kAsking, now, Clock::time_point::max());
  return Event::kRequest;
}

void Connection::wait_until(Clock::time_point due) { enter(Stage::kWaiting, since_, due); }

Connection::Event Connection::send(SharedBytes head, SharedBytes body, After after, Clock::time_point now) {
  head_ = std::move(head);
  body_ = std::move(body);
  sent_ = 0;
  after_ = after;
  // No further request is read, so the memory of this one, which may be large, need not wait for the client.
  if (after == After::kLinger) reader_ = RequestReader(limits_->body);
  enter(Stage::kSending, now, now + std::min(limits_->stall, limits_->transmit));
  return send_on(now);
}

Connection::Event Connection::send_on(Clock::time_point now) {
  while (sent_ < head_.size() + body_.size()) {
    std::array<iovec, 2> parts{part_from(head_, sent_), part_from(body_, sent_ - std::min(sent_, head_.size()))};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t count = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && would_block()) return Event::kNone;
    if (count <= 0) return Event::kClosed;
    sent_ += static_cast<std::size_t>(count);
    deadline_ = std::min(now + limits_->stall, since_ + limits_->transmit);
  }
  head_ = {};
  body_ = {};
  sent_ = 0;
  switch (after_) {
    case After::kClose:
      break;
    case After::kLinger:
      // Closing with unread input resets the connection, which may lose the answer.
      static_cast<void>(::shutdown(socket_.get(), SHUT_WR));
      enter(Stage::kLingering, now, now + limits_->linger);
      return drop_input();
    case After::kNextRequest:
      enter(Stage::kReceiving, now, now + limits_->idle);
      // A pipelining client may have sent the next request already.
      reader_.next();
      if (!reader_.empty()) deadline_ = now + limits_->receive;
      return receive(now);
  }
  return Event::kClosed;
}

Connection::Event Connection::drop_input() {
  while (dropped_bytes_ < kMostDroppedBytes) {
    std::array<char, kPieceBytes> piece;
    const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && would_block()) return Event::kNone;
    if (count <= 0) return Event::kClosed;
    dropped_bytes_ += static_cast<std::size_t>(count);
  }
  return Event::kClosed;
}

}  // namespace flamed::api
