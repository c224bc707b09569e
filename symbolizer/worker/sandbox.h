// SPDX-License-Identifier: Apache-2.0
//
// The sandbox of the ELF worker: takes rights away from the calling process for good. Only for processes with one
// thread.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/handle.h"
#include "base/result.h"
#include "symbolizer/worker/request.h"

namespace flamed::symbolizer {

/// The system calls that are let through; any other ends the process at once (SIGSYS).
class SystemCallFilter {
 public:
  /// For a process that reads `kFiles` that it has open already, and answers on descriptor 0: nothing that opens,
  /// connects, starts, signals, maps a file or makes memory executable.
  static Result<SystemCallFilter> for_reading();
  /// In addition what it takes to serve requests in children of fork_with_pidfd(), and to put for_reading() on them.
  static Result<SystemCallFilter> for_spawning();

  /// Needs no_new_privs.
  [[nodiscard]] Status enforce() const;

 private:
  explicit SystemCallFilter(std::vector<sock_filter> program) : program_(std::move(program)) {}
  static Result<SystemCallFilter> build(bool spawns);
  std::vector<sock_filter> program_;
};

/// Gives up all that a spawner can do without: capabilities and new privileges, files and what else lies outside, and
/// being traced by others of its user; root takes `user` and `group` besides. None of it needs a right, but leaving
/// root does. A step that this process or kernel doesn't allow is skipped, and its errno in the result says so. Doesn't
/// filter system calls yet.
Hello give_up_rights(uid_t user, gid_t group);

/// fork(2), and for the parent the child's pidfd. Only the kernel's part of it: no handlers of pthread_atfork(3), and
/// the C library goes on thinking that the child's thread has the parent's number.
pid_t fork_with_pidfd(Fd& pidfd);

/// Sets the limits of one request on the calling process, which is ended by SIGALRM, SIGXCPU or SIGKILL when it exceeds
/// them; memory that it may not have fails to be allocated.
Status limit_request(const RequestLimits& limits);

}  // namespace flamed::symbolizer
