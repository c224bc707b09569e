// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

bool wait_readable(int fd, const Deadline& deadline) {
  pollfd polled{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&polled, 1, deadline.left_ms());
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

struct SpawnSettings {
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

/// A session of its own (a Ctrl-C at the daemon's terminal is the daemon's), no environment, no descriptor but
/// `control` as 0, signals as at first.
int spawn(const WorkerProcess::Program& program, int control, pid_t& pid) {
  SpawnSettings settings;
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&settings.attributes, &all);
  ::posix_spawnattr_setsigmask(&settings.attributes, &none);
  ::posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  ::posix_spawn_file_actions_adddup2(&settings.actions, control, STDIN_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&settings.actions, STDIN_FILENO + 1);

  std::string name = "flamed: elf worker";
  std::string argument = kSpawnerArgument;
  std::string user = std::to_string(program.user);
  std::string group = std::to_string(program.group);
  const std::array<char*, 5> arguments = {name.data(), argument.data(), user.data(), group.data(), nullptr};
  const std::array<char*, 1> environment = {nullptr};
  return ::posix_spawn(&pid, program.path.c_str(), &settings.actions, &settings.attributes, arguments.data(),
                       environment.data());
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const Program& program) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error::from_errno("cannot start the ELF worker: socketpair");
  }
  Fd control(ends[0]);
  const Fd theirs(ends[1]);
  pid_t pid = -1;
  if (const int error = spawn(program, theirs.get(), pid); error != 0) {
    return Error::from_errno("cannot start the ELF worker from " + program.path, error);
  }
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(pid, std::move(pidfd), std::move(control)));
  if (!process->pidfd_) return Error::from_errno("cannot watch the ELF worker: pidfd_open");

  pollfd polled[2] = {{process->control_.get(), POLLIN, 0}, {process->pidfd_.get(), POLLIN, 0}};
  const Deadline deadline = Deadline::after(kStartNs);
  while (::poll(polled, 2, deadline.left_ms()) < 0 && errno == EINTR) {
  }
  if (polled[0].revents == 0) {
    return Error(polled[1].revents != 0 ? "the ELF worker ended while it was started"
                                        : "the ELF worker did not come up within 2 s");
  }
  Hello& hello = process->hello_;
  const Result<ReceivedMessage> message =
      receive_message(process->control_.get(), std::as_writable_bytes(std::span(&hello, 1)));
  if (!message || message->bytes != sizeof(hello) || hello.magic != Hello::kMagic) {
    return Error("the ELF worker ended while it was started");
  }
  return process;
}

WorkerProcess::~WorkerProcess() {
  // It ends by itself when nobody holds the other end any more. Killing it may be forbidden: it has another user.
  control_.reset();
  if (!pidfd_ || !wait_readable(pidfd_.get(), Deadline::after(kEndNs))) {
    ::kill(pid_, SIGKILL);
    if (pidfd_ && !wait_readable(pidfd_.get(), Deadline::after(kEndNs))) return;
  }
  while (::waitpid(pid_, nullptr, pidfd_ ? WNOHANG : 0) < 0 && errno == EINTR) {
  }
}

Result<WorkerProcess::Ends> WorkerProcess::order(bool is_background, const RequestLimits& limits) {
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
  order.is_background = is_background ? 1 : 0;
  order.limits = limits;
  const std::array<int, Order::kFds> fds = {their_socket.get(), their_news.get()};
  if (Status sent = send_message(control_.get(), std::as_bytes(std::span(&order, 1)), fds); !sent.ok()) {
    return sent.error();
  }
  static_cast<void>(usage());  // or the socket would fill up with what nobody reads
  return ends;
}

bool WorkerProcess::is_alive() const {
  pollfd polled{pidfd_.get(), POLLIN, 0};
  return !given_up_ && ::poll(&polled, 1, 0) == 0;
}

Usage WorkerProcess::usage() {
  std::lock_guard lock(usage_mutex_);
  for (;;) {
    Usage next;
    const ssize_t size = ::recv(control_.get(), &next, sizeof(next), MSG_DONTWAIT);
    if (size != sizeof(next) || next.magic != Usage::kMagic) return usage_;
    usage_ = next;
  }
}

}  // namespace flamed::symbolizer
