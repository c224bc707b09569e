// SPDX-License-Identifier: Apache-2.0
//
// RuntimeNamer: reads what functions of managed runtimes are called while their process runs. Ingest asks. A thread of
// its own opens the process's memory, and the ELF worker reads the names from that descriptor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "base/bounded_queue.h"
#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/model/runtime_module.h"
#include "symbolizer/opener/guarded_opener.h"

namespace flamed::daemon {

class RuntimeNamer {
 public:
  /// Both must outlive it.
  RuntimeNamer(symbolizer::GuardedOpener& opener, symbolizer::ModuleReader& reader)
      : opener_(opener), reader_(reader) {}

  struct Request {
    ProcessId process;
    std::uint64_t exec_id = 0;  ///< of its program: another one has other memory
    std::uint32_t user = 0;
    symbolizer::RuntimeProcess where;
    std::vector<symbolizer::RuntimeCode> codes;    ///< at most symbolizer::kMostRuntimeCodes
    std::vector<symbolizer::CopiedCode> copies{};  ///< of some of them
  };
  struct Answer {
    Request request;
    Result<std::vector<symbolizer::RuntimeAnswer>> names;
  };

  // -- Ingest --------------------------------------------------------------------------------------------------------

  /// False: too many requests wait.
  [[nodiscard]] bool ask(Request request) { return requests_.try_push(std::move(request)); }
  /// Those since the last call.
  [[nodiscard]] std::vector<Answer> take_answers();

  // -- A thread of its own -------------------------------------------------------------------------------------------

  /// Serves requests until `stop` is requested.
  void run(const std::stop_token& stop);

  // -- Any thread ----------------------------------------------------------------------------------------------------

  struct Stats {
    std::uint64_t named = 0;    ///< code objects
    std::uint64_t unnamed = 0;  ///< those that could not be read
  };
  [[nodiscard]] Stats stats() const { return {named_.load(), unnamed_.load()}; }

 private:
  static constexpr std::size_t kMostWaiting = 1024;
  static constexpr std::size_t kMostOpen = 64;
  /// Of one user's processes, before none of them is read any more: their pages come from a file system that does not
  /// answer.
  static constexpr unsigned kMostStuck = 3;

  Result<std::vector<symbolizer::RuntimeAnswer>> read(const Request& request);
  Result<int> memory_of(const Request& request);

  symbolizer::GuardedOpener& opener_;
  symbolizer::ModuleReader& reader_;
  BoundedQueue<Request> requests_{kMostWaiting};
  std::mutex mutex_;  ///< guards the answers
  std::vector<Answer> answers_;
  // Of the thread:
  struct Memory {
    std::uint64_t exec_id = 0;
    Fd file;
  };
  std::unordered_map<ProcessId, Memory> open_;
  std::deque<ProcessId> opened_;                       ///< the keys of open_, the oldest first
  std::unordered_map<std::uint32_t, unsigned> stuck_;  ///< by user
  std::atomic<std::uint64_t> named_ = 0, unnamed_ = 0;
};

}  // namespace flamed::daemon
