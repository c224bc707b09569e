// SPDX-License-Identifier: Apache-2.0
#include "test/support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace flamed::test {
namespace {

using Clock = std::chrono::steady_clock;

/// Waits until `fd` is readable, or until `end`.
bool wait_readable(int fd, Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  pollfd poll{fd, POLLIN, 0};
  return left.count() > 0 && ::poll(&poll, 1, static_cast<int>(left.count())) > 0;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, Capture capture) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  output_.reset(pipe[0]);
  const Fd write_end(pipe[1]);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  if (capture == Capture::kOutputAndErrors) {
    ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
  }
  const int error = ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + command[0]);
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

ChildProcess::~ChildProcess() { kill(); }

std::optional<std::string> ChildProcess::read_line(std::chrono::milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  for (;;) {
    const std::size_t newline = buffered_.find('\n');
    if (newline != std::string::npos) {
      std::string line = buffered_.substr(0, newline);
      buffered_.erase(0, newline + 1);
      return line;
    }
    if (!wait_readable(output_.get(), end)) return std::nullopt;
    std::array<char, 4096> chunk{};
    const ssize_t size = ::read(output_.get(), chunk.data(), chunk.size());
    if (size <= 0) return std::nullopt;
    buffered_.append(chunk.data(), static_cast<std::size_t>(size));
  }
}

void ChildProcess::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds deadline) {
  if (status_) return status_;
  if (!wait_readable(pidfd_.get(), Clock::now() + deadline)) return std::nullopt;
  int status = 0;
  ::waitpid(pid_, &status, 0);
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

void ChildProcess::kill() {
  if (status_) return;
  ::kill(pid_, SIGKILL);
  static_cast<void>(wait(std::chrono::seconds(10)));
}

}  // namespace flamed::test
