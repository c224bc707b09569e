// SPDX-License-Identifier: Apache-2.0
//
// LiveHotSpot: a JVM that runs ShowOwnStack.java, and what it says of itself. Killed by the destructor.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/handle.h"
#include "base/result.h"
#include "runtimes/hotspot/layout.h"
#include "test/unit/runtimes/live_python.h"

namespace flamed::runtimes {

/// The machine's own JVM, or those that FLAMED_JVMS names instead, with colons between them: programs "java".
std::vector<std::string> jvms();

/// Compiles a program for JDK 8 and later: the folder of its classes, which is removed at the end of this program.
Result<std::string> compile_java(const std::string& source);

class LiveHotSpot {
 public:
  /// Compiles the program and waits until the JVM has printed the stack. `options` are the JVM's.
  static Result<LiveHotSpot> start(const std::string& java, const std::vector<std::string>& options);
  LiveHotSpot(LiveHotSpot&& other) noexcept;
  LiveHotSpot& operator=(LiveHotSpot&&) = delete;
  ~LiveHotSpot();

  struct Module {
    HotSpotLayout layout;
    std::uint64_t base = 0;
  };
  [[nodiscard]] Result<Module> find_module() const;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Addresses of code that lie on the stack of the thread that has shown its stack, the innermost first. Some may be
  /// left over from calls that have returned.
  [[nodiscard]] std::vector<std::uint64_t> words_on_stack() const;
  /// Innermost first.
  [[nodiscard]] const std::vector<ShownFrame>& stack() const { return stack_; }
  /// By number of compilation: "java.lang.String::hashCode", of each method that it has said to have compiled.
  [[nodiscard]] const std::map<std::uint32_t, std::string>& compiled() const { return compiled_; }

 private:
  LiveHotSpot() = default;
  Status read_stack(int output);

  pid_t pid_ = -1;
  int thread_ = 0;
  std::vector<ShownFrame> stack_;
  std::map<std::uint32_t, std::string> compiled_;
};

}  // namespace flamed::runtimes
