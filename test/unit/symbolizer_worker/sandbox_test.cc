// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "symbolizer/worker/landlock.h"
#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

constexpr int kNotTried = 77;

/// The wait(2) status of a process that runs `action` and exits with its result.
int status_after(const std::function<int()>& action) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(action());
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return status;
}

/// Runs under the spawner's filter.
int status_as_spawner(const std::function<int()>& action) {
  const Result<SystemCallFilter> filter = SystemCallFilter::for_spawning();
  REQUIRE(filter.ok());
  return status_after([&] {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const Status enforced = filter->enforce();
    return enforced ? action() : kNotTried;
  });
}

bool is_not_tried(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == kNotTried; }

TEST_CASE("the spawner, which may share the daemon's user, can't signal, limit, slow down or trace it") {
  const pid_t daemon = ::getpid();
  const rlimit limit{0, 0};
  const std::vector<std::pair<std::string, std::function<long()>>> attempts = {
      {"kill", [&] { return ::syscall(SYS_kill, daemon, 0); }},
      {"tgkill", [&] { return ::syscall(SYS_tgkill, daemon, daemon, 0); }},
      {"open a pidfd", [&] { return ::syscall(SYS_pidfd_open, daemon, 0); }},
      {"limit", [&] { return ::syscall(SYS_prlimit64, daemon, RLIMIT_CORE, &limit, nullptr); }},
      {"slow down", [&] { return ::syscall(SYS_setpriority, PRIO_PROCESS, daemon, 0); }},
      {"move to another CPU", [&] { return ::syscall(SYS_sched_setaffinity, daemon, 0, nullptr); }},
      {"trace", [&] { return ::syscall(SYS_ptrace, 0, daemon, nullptr, nullptr); }},
      {"read memory", [&] { return ::syscall(SYS_process_vm_readv, daemon, nullptr, 0, nullptr, 0, 0); }},
      {"open", [] { return ::syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY, 0); }},
      {"make a thread", [] { return ::syscall(SYS_clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, nullptr, 0, 0, 0); }},
      {"make a namespace", [] { return ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, 0, 0, 0); }},
      {"be dumpable again", [] { return ::syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0); }},
  };
  for (const auto& [name, attempt] : attempts) {
    INFO(name);
    const int status = status_as_spawner([&tried = attempt] { return tried() == 0 ? 0 : 1; });
    if (is_not_tried(status)) {
      WARN("not tried: built with a sanitizer");
      return;
    }
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSYS);
  }
}

TEST_CASE("the spawner can make a child and end it") {
  const int status = status_as_spawner([] {
    Fd pidfd;
    const pid_t child = fork_with_pidfd(pidfd);
    if (child == 0) {
      for (;;) ::poll(nullptr, 0, -1);
    }
    if (child < 0 || ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) != 0) return 1;
    int ended = 0;
    return ::wait4(child, &ended, 0, nullptr) == child && WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL ? 0 : 2;
  });
  if (is_not_tried(status)) {
    WARN("not tried: built with a sanitizer");
    return;
  }
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("under Landlock no file can be opened or created, and open files can be read") {
  const Fd open_before(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const int status = status_after([&] {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!forbid_outside_world().ok()) return kNotTried;
    if (::open("/proc/self/exe", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES) return 1;
    if (::open("/tmp/flamed-worker-was-here", O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0 || errno != EACCES) return 2;
    char byte = 0;
    return ::pread(open_before.get(), &byte, 1, 1) == 1 && byte == 'E' ? 0 : 3;
  });
  if (is_not_tried(status)) {
    WARN("not tried: this kernel has no Landlock, or has it switched off");
    return;
  }
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace flamed::symbolizer
