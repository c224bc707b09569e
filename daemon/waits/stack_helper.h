// SPDX-License-Identifier: Apache-2.0
//
// StackHelper: a process of flamed that reads the stacks of other processes' threads, and who holds the mutexes for
// which they wait. Reading memory of a process can wait for a file system that does not answer, since a stack may be a
// mapped file: then the helper waits, and is abandoned.
//
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mapped_memory.h"
#include "base/result.h"
#include "bpf/visits.h"
#include "daemon/waits/hung_memory.h"
#include "daemon/waits/lock_holder.h"
#include "symbolizer/ipc/helper_process.h"

namespace flamed::daemon {

/// The one argument that starts a program as the helper.
inline constexpr const char* kStackHelperArgument = "(stack helper)";

/// For the first lines of main(): if the program was started as the helper, serves until the daemon is gone, and
/// returns the exit status.
std::optional<int> run_stack_helper_if_asked(int argc, char** argv);

/// A thread that waits.
struct StackRequest {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::uint32_t user = 0;  ///< the thread's owner
  std::uint32_t reserved = 0;
  std::uint64_t start_ns = 0;  ///< with the pid, the process's identity
  std::uint64_t address = 0;   ///< of the first byte to read
  std::uint64_t runs = 0;      ///< flamed_wait.runs: with another number it does not wait there any more
  FutexWait futex{};
};

/// What became of a request.
struct StackAnswer {
  std::uint32_t bytes = 0;                    ///< of the stack
  std::uint32_t outcome = FLAMED_STACK_LATE;  ///< FLAMED_STACK_READ and those after it
  LockHolder holder{};
};

class StackHelper {
 public:
  /// Threads in one request.
  static constexpr std::size_t kMost = 32;
  static constexpr std::size_t kStackBytes = 8192;

  struct Options {
    std::string program = "/proc/self/exe";    ///< calls run_stack_helper_if_asked() first in its main()
    std::int64_t limit_ns = kNsPerSecond / 4;  ///< timeout of an answer; eight times that while the helper could run
  };
  /// The clock must outlive it.
  explicit StackHelper(const Clock& clock) : StackHelper(clock, Options()) {}
  StackHelper(const Clock& clock, Options options) : clock_(clock), options_(std::move(options)) {}
  ~StackHelper();
  StackHelper(const StackHelper&) = delete;
  StackHelper& operator=(const StackHelper&) = delete;

  /// visit(index of the request, its StackAnswer, the bytes from its address on) for each. At most kMost requests. The
  /// bytes are cleared afterwards.
  template <typename F>
  void read(std::span<const StackRequest> requests, F&& visit) {
    std::vector<StackAnswer> answers = ask(requests);
    answers.resize(requests.size());
    for (std::size_t i = 0; i < answers.size(); ++i) visit(i, answers[i], stack(i).first(answers[i].bytes));
    clear(answers);
  }

  /// Would the process's memory most likely block the next helper, too?
  [[nodiscard]] bool is_refused(const StackRequest& request) const { return hung_.is_refused(process_of(request)); }
  [[nodiscard]] std::uint64_t timeouts() const { return timeouts_; }
  /// Of all helpers so far, and the part of it in which they started.
  [[nodiscard]] std::int64_t cpu_ns() const;
  [[nodiscard]] std::int64_t start_cpu_ns() const { return start_cpu_ns_; }

 private:
  static HungMemory::Process process_of(const StackRequest& request) {
    return {request.pid, request.start_ns, request.user};
  }
  /// For each request; empty: there was no answer.
  std::vector<StackAnswer> ask(std::span<const StackRequest> requests);
  Status start();
  /// False: there was none in time.
  [[nodiscard]] bool await_answer() const;
  void abandon();
  void clear(std::span<const StackAnswer> answers);
  [[nodiscard]] std::span<const std::byte> stack(std::size_t index) const {
    if (memory_.data() == nullptr) return {};
    return {memory_.data() + index * kStackBytes, kStackBytes};
  }

  const Clock& clock_;
  const Options options_;
  std::optional<symbolizer::HelperProcess> process_;
  MappedMemory memory_;  ///< shared with it
  std::vector<symbolizer::HelperProcess> abandoned_;
  HungMemory hung_;
  std::uint64_t timeouts_ = 0;
  std::int64_t ended_cpu_ns_ = 0;
  std::int64_t start_cpu_ns_ = 0;
};

}  // namespace flamed::daemon
