// SPDX-License-Identifier: Apache-2.0
//
// WorkerProcess: the daemon's handle of one spawner. Any thread. The destructor ends the process and its children.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/handle.h"
#include "base/result.h"
#include "symbolizer/ipc/helper_process.h"
#include "symbolizer/model/reading_purpose.h"
#include "symbolizer/worker/request.h"

namespace flamed::symbolizer {

class WorkerProcess {
 public:
  struct Program {
    std::string path = "/proc/self/exe";  ///< calls run_spawner_if_asked() first in its main()
    uid_t user = 65534;                   ///< to change to, if this process may
    gid_t group = 65534;
  };

  /// Starts the program and waits, for at most two seconds, until it has given up its rights.
  static Result<std::unique_ptr<WorkerProcess>> start(const Program& program);
  /// Ends the process and reads its last status; takes a moment.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// The daemon's ends of a child's sockets, see request.h.
  struct Ends {
    Fd socket;
    Fd news;
  };
  /// Starts a child, for one request or for many. An error means that the process is dead, or does not keep up.
  Result<Ends> order(ReadingPurpose purpose, bool serves_many, const RequestLimits& limits);

  [[nodiscard]] bool is_alive() const;
  /// Marks the process as failed, so that another one is started. True the first time.
  bool give_up() { return !given_up_.exchange(true); }
  [[nodiscard]] const Hello& hello() const { return hello_; }
  /// The last usage that the process has reported.
  [[nodiscard]] Usage usage();

 private:
  explicit WorkerProcess(HelperProcess helper) : helper_(std::move(helper)) {}

  HelperProcess helper_;
  Hello hello_;
  std::atomic<bool> given_up_ = false;
  std::mutex usage_mutex_;  ///< guards usage_ and reading from its socket
  Usage usage_;
};

}  // namespace flamed::symbolizer
