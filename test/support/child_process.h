// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: a program that a test starts, and that is killed with the object.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/handle.h"

namespace flamed::test {

class ChildProcess {
 public:
  enum class Capture { kOutput, kOutputAndErrors };
  /// Starts the program and connects its output. Throws if it can't be started.
  explicit ChildProcess(const std::vector<std::string>& command, Capture capture = Capture::kOutput);
  /// Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The next line of its output, without the newline. Empty at its end or after `deadline`.
  std::optional<std::string> read_line(std::chrono::milliseconds deadline);
  void signal(int number) const;
  /// Its exit code, or 128 + signal. Empty when it has not ended within `deadline`.
  std::optional<int> wait(std::chrono::milliseconds deadline);
  void kill();

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  Fd output_;
  Fd pidfd_;
  std::string buffered_;
};

}  // namespace flamed::test
