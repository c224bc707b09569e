// SPDX-License-Identifier: Apache-2.0
//
// LivePython: a Python that runs show_own_stack.py, and what it says of itself. Killed by the destructor.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/handle.h"
#include "base/result.h"
#include "runtimes/python/layout.h"
#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

/// The machine's own Python, or those that FLAMED_PYTHONS names instead, with colons between them.
std::vector<std::string> pythons();

/// Reads by process_vm_readv(2).
class ProcessMemory final : public RemoteMemory {
 public:
  explicit ProcessMemory(pid_t pid) : pid_(pid) {}
  bool read(std::uint64_t address, std::span<std::byte> to) override;

 private:
  pid_t pid_;
};

struct ShownFrame {
  std::string name;
  std::string file;
  std::uint32_t line = 0;

  friend bool operator==(const ShownFrame&, const ShownFrame&) = default;
};

class LivePython {
 public:
  /// Waits until it has printed its stack. `mode`: see the script.
  static Result<LivePython> start(const std::string& python, const std::string& mode);
  LivePython(LivePython&& other) noexcept;
  LivePython& operator=(LivePython&&) = delete;
  ~LivePython();

  /// The module of the process that is a Python, and where it is loaded.
  struct Module {
    PythonLayout layout;
    std::uint64_t base = 0;
    std::string path;
  };
  [[nodiscard]] Result<Module> find_module() const;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::uint64_t thread() const { return thread_; }
  /// Innermost first.
  [[nodiscard]] const std::vector<ShownFrame>& stack() const { return stack_; }

 private:
  LivePython() = default;
  Status read_stack(int output);

  pid_t pid_ = -1;
  Fd input_;
  std::uint64_t thread_ = 0;
  std::vector<ShownFrame> stack_;
};

}  // namespace flamed::runtimes
