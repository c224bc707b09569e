// SPDX-License-Identifier: Apache-2.0
//
// The sandbox of the ELF worker: drops rights of the calling process forever. Only for processes with one thread.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/handle.h"
#include "base/result.h"
#include "symbolizer/worker/request.h"

namespace flamed::symbolizer {

/// The allowed system calls; any other kills the process at once (SIGSYS).
class SystemCallFilter {
 public:
  /// For a process that reads `kFiles` open files, and answers on descriptor 0: no calls that open, connect, start
  /// processes, signal, map files or make memory executable.
  static Result<SystemCallFilter> for_reading();
  /// Also allows receiving more of them on descriptor 0.
  static Result<SystemCallFilter> for_serving();
  /// Also allows calls for serving requests in children of fork_with_pidfd(), and for setting for_reading() on them.
  static Result<SystemCallFilter> for_spawning();

  /// Needs no_new_privs.
  [[nodiscard]] Status enforce() const;

 private:
  explicit SystemCallFilter(std::vector<sock_filter> program) : program_(std::move(program)) {}
  enum class Role : std::uint8_t { kReads, kServes, kSpawns };
  static Result<SystemCallFilter> build(Role role);
  std::vector<sock_filter> program_;
};

/// Drops everything that a spawner does not need: capabilities and new privileges, access to files and the outside, and
/// being traceable by its user's processes; root also changes to `user` and `group`. Only the change of user needs
/// rights. A step that this process or kernel does not allow is skipped, and its errno is in the result. Does not
/// filter system calls yet.
Hello give_up_rights(uid_t user, gid_t group);

/// fork(2) with the child's pidfd for the parent. Only the system call: no handlers of pthread_atfork(3) run, and in
/// the child the C library still has the parent's thread id.
pid_t fork_with_pidfd(Fd& pidfd);

/// Sets the limits of one request on the calling process, which SIGALRM, SIGXCPU or SIGKILL ends when it exceeds them;
/// allocations beyond the memory limit fail. It may have descriptors below `descriptors`, besides those it has.
Status limit_request(const RequestLimits& limits, unsigned descriptors);

}  // namespace flamed::symbolizer
