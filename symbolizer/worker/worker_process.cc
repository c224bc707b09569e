// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "symbolizer/ipc/deadline.h"
#include "symbolizer/ipc/fd_message.h"
#include "symbolizer/worker/spawner.h"

namespace flamed::symbolizer {
namespace {

constexpr std::int64_t kStartNs = 2 * kNsPerSecond;
constexpr std::int64_t kEndNs = kNsPerSecond / 2;

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const Program& program) {
  Result<HelperProcess> helper = start_helper(
      program.path,
      {"flamed: elf worker", kSpawnerArgument, std::to_string(program.user), std::to_string(program.group)});
  if (!helper) return std::move(helper).error().with_context("cannot start the ELF worker");
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(std::move(*helper)));

  pollfd polled[2] = {{process->helper_.socket.get(), POLLIN, 0}, {process->helper_.pidfd.get(), POLLIN, 0}};
  const Deadline deadline = Deadline::after(kStartNs);
  while (::poll(polled, 2, deadline.left_ms()) < 0 && errno == EINTR) {
  }
  if (polled[0].revents == 0) {
    return Error(polled[1].revents != 0 ? "the ELF worker exited while it was started"
                                        : "the ELF worker did not start within 2 s");
  }
  Hello& hello = process->hello_;
  const Result<ReceivedMessage> message =
      receive_message(process->helper_.socket.get(), std::as_writable_bytes(std::span(&hello, 1)));
  if (!message || message->bytes != sizeof(hello) || hello.magic != Hello::kMagic) {
    return Error("the ELF worker exited while it was started");
  }
  return process;
}

WorkerProcess::~WorkerProcess() {
  // It exits when the other end is closed. Killing it may be forbidden: it has another user.
  helper_.socket.reset();
  if (!helper_.ends_within(kEndNs)) {
    ::kill(helper_.pid, SIGKILL);
    if (!helper_.ends_within(kEndNs)) return;
  }
  while (::waitpid(helper_.pid, nullptr, WNOHANG) < 0 && errno == EINTR) continue;
}

Result<WorkerProcess::Ends> WorkerProcess::order(ReadingPurpose purpose, bool serves_many,
                                                 const RequestLimits& limits) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) return Error::from_errno("socketpair");
  Ends ends;
  ends.socket.reset(sockets[0]);
  const Fd their_socket(sockets[1]);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) return Error::from_errno("pipe2");
  ends.news.reset(pipe[0]);
  const Fd their_news(pipe[1]);
  if (::fcntl(ends.socket.get(), F_SETFL, O_NONBLOCK) != 0) return Error::from_errno("fcntl");

  Order order;
  order.purpose = purpose;
  order.serves_many = serves_many ? 1 : 0;
  order.limits = limits;
  if (serves_many) {
    order.limits.wall_ns += kSessionNs;
    order.limits.cpu_seconds += kSessionNs / kNsPerSecond;
  }
  const std::array<int, Order::kFds> fds = {their_socket.get(), their_news.get()};
  if (Status sent = send_message(helper_.socket.get(), std::as_bytes(std::span(&order, 1)), fds); !sent.ok()) {
    return sent.error();
  }
  static_cast<void>(usage());  // drains the socket, which would fill up otherwise
  return ends;
}

bool WorkerProcess::is_alive() const { return !given_up_ && !helper_.ends_within(0); }

Usage WorkerProcess::usage() {
  std::lock_guard lock(usage_mutex_);
  for (;;) {
    Usage next;
    const ssize_t size = ::recv(helper_.socket.get(), &next, sizeof(next), MSG_DONTWAIT);
    if (size != sizeof(next) || next.magic != Usage::kMagic) return usage_;
    usage_ = next;
  }
}

}  // namespace flamed::symbolizer
