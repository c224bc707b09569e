// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/worker_exchange.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "symbolizer/ipc/fd_message.h"

namespace flamed::symbolizer {
namespace {

/// How long the spawner's message may come after a child's end.
constexpr std::int64_t kNewsNs = kNsPerSecond / 2;

}  // namespace

Status WorkerExchange::wait(short events) {
  for (;;) {
    std::array<pollfd, 2> polled{{{ends_.socket.get(), events, 0}, {stop_, POLLIN, 0}}};
    const int ready = ::poll(polled.data(), polled.size(), deadline_.left_ms());
    if (polled[1].revents != 0) return Error::from_errno("the ELF worker", ECANCELED);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Error::from_errno("poll");
    if (deadline_.is_over()) return Error::from_errno("the ELF worker", ETIMEDOUT);
  }
}

bool WorkerExchange::is_cancelled() const {
  pollfd polled{stop_, POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

Status WorkerExchange::send(const RequestHead& head, std::span<const int> fds, const WireWriter& payload) {
  if (Status sent = send_message(ends_.socket.get(), std::as_bytes(std::span(&head, 1)), fds); !sent.ok()) return sent;
  for (std::span<const std::byte> piece : payload.pieces()) {
    while (!piece.empty()) {
      const ssize_t size = ::send(ends_.socket.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (size >= 0) {
        piece = piece.subspan(static_cast<std::size_t>(size));
      } else if (errno == EAGAIN) {
        if (Status ready = wait(POLLOUT); !ready.ok()) return ready;
      } else if (errno != EINTR) {
        return Error::from_errno("send");
      }
    }
  }
  return {};
}

Status WorkerExchange::read(std::span<std::byte> to) {
  for (;;) {
    const std::size_t known = std::min(to.size(), arrived_.size());
    std::copy_n(arrived_.begin(), known, to.begin());
    arrived_ = arrived_.subspan(known);
    to = to.subspan(known);
    if (to.empty()) return {};
    const bool is_large = to.size() >= buffer_.size();
    const std::span<std::byte> into = is_large ? to : std::span<std::byte>(buffer_);
    const ssize_t size = ::recv(ends_.socket.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (size > 0 && is_large) {
      to = to.subspan(static_cast<std::size_t>(size));
    } else if (size > 0) {
      arrived_ = into.first(static_cast<std::size_t>(size));
    } else if (size == 0) {
      return Error("the answer ends too early", EPIPE);
    } else if (errno == EAGAIN) {
      if (Status ready = wait(POLLIN); !ready.ok()) return ready;
    } else if (errno != EINTR) {
      return Error::from_errno("recv");
    }
    // A child that always sends one more byte would never let poll() time out.
    if (arrived_.size() < to.size() && deadline_.is_over()) return Error::from_errno("the ELF worker", ETIMEDOUT);
  }
}

WorkerExchange::Ending WorkerExchange::ending() {
  if (is_cancelled()) return {Ending::Kind::kCancelled};
  const bool timed_out = deadline_.is_over();
  const Deadline patience = Deadline::after(timed_out ? 0 : std::min(kNewsNs, deadline_.left_ns()));
  bool has_started = false;
  for (;;) {
    News news{};
    const ssize_t size = ::read(ends_.news.get(), &news, sizeof(news));
    if (size == 0) return {Ending::Kind::kLost};
    if (size == sizeof(news)) {
      if (news.what == News::What::kRefused) return {Ending::Kind::kRefused, news.detail};
      if (news.what == News::What::kEnded) return {Ending::Kind::kEnded, news.detail};
      has_started = true;
      continue;
    }
    if (size < 0 && errno == EINTR) continue;
    if (timed_out || patience.is_over()) return {has_started ? Ending::Kind::kTimedOut : Ending::Kind::kNotStarted};
    pollfd polled{ends_.news.get(), POLLIN, 0};
    ::poll(&polled, 1, patience.left_ms());
  }
}

}  // namespace flamed::symbolizer
