// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/ipc/helper_process.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "symbolizer/ipc/deadline.h"

namespace flamed::symbolizer {
namespace {

int spawn(const std::string& program, std::vector<std::string>& arguments, int socket, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  ::posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDIN_FILENO + 1);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  const std::array<char*, 1> environment = {nullptr};
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, words.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

Result<HelperProcess> start_helper(const std::string& program, std::vector<std::string> arguments) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return Error::from_errno("socketpair");
  HelperProcess helper;
  helper.socket.reset(ends[0]);
  const Fd theirs(ends[1]);
  if (const int error = spawn(program, arguments, theirs.get(), helper.pid); error != 0) {
    return Error::from_errno(program, error);
  }
  helper.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, helper.pid, 0)));
  if (helper.pidfd) return helper;
  const Error error = Error::from_errno("pidfd_open");
  ::kill(helper.pid, SIGKILL);
  while (::waitpid(helper.pid, nullptr, 0) < 0 && errno == EINTR) continue;
  return error;
}

bool HelperProcess::ends_within(std::int64_t ns) const {
  const Deadline deadline = Deadline::after(ns);
  pollfd polled{pidfd.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&polled, 1, deadline.left_ms());
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace flamed::symbolizer
