// SPDX-License-Identifier: Apache-2.0
//
// RuntimeNamer: reads what functions of managed runtimes are called while their process runs. Ingest asks. A thread of
// its own has the ELF worker read the names from the process's memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <vector>

#include "base/bounded_queue.h"
#include "base/result.h"
#include "daemon/runtimes/process_memories.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/model/runtime_module.h"

namespace flamed::daemon {

class RuntimeNamer {
 public:
  /// Both must outlive it.
  RuntimeNamer(ProcessMemories& memories, symbolizer::ModuleReader& reader) : memories_(memories), reader_(reader) {}

  struct Request {
    ProcessMemories::Owner owner;
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

  Result<std::vector<symbolizer::RuntimeAnswer>> read(const Request& request);

  ProcessMemories& memories_;
  symbolizer::ModuleReader& reader_;
  BoundedQueue<Request> requests_{kMostWaiting};
  std::mutex mutex_;  ///< guards the answers
  std::vector<Answer> answers_;
  std::atomic<std::uint64_t> named_ = 0, unnamed_ = 0;
};

}  // namespace flamed::daemon
