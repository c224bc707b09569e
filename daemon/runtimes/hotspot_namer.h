// SPDX-License-Identifier: Apache-2.0
//
// HotSpotNamer: reads which methods run at addresses of code in HotSpot JVMs, while they run. Ingest asks. A thread of
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
#include "base/clock.h"
#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/model/hotspot_module.h"
#include "symbolizer/model/hotspot_names.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/opener/guarded_opener.h"
#include "symbolizer/process/module_table.h"

namespace flamed::daemon {

class HotSpotNamer {
 public:
  /// All of them must outlive it.
  HotSpotNamer(symbolizer::ModuleTable& modules, symbolizer::GuardedOpener& opener, symbolizer::ModuleReader& reader)
      : modules_(modules), opener_(opener), reader_(reader) {}

  struct Request {
    ProcessId process;
    std::uint64_t exec_id = 0;  ///< of its program: another one has other memory
    std::uint32_t user = 0;
    ModuleId library;
    symbolizer::HotSpotMapping mapping;  ///< of the library
    symbolizer::HotSpotQuestion question{};
  };
  struct Answer {
    Request request;
    MonotonicTime began;  ///< nothing was read before
    Result<symbolizer::HotSpotNames> names;
  };

  // -- Ingest --------------------------------------------------------------------------------------------------------

  /// False: too many requests wait.
  [[nodiscard]] bool ask(Request request) { return requests_.try_push(std::move(request)); }
  /// Those since the last call.
  [[nodiscard]] std::vector<Answer> take_answers();

  // -- A thread of its own -------------------------------------------------------------------------------------------

  /// Serves requests until `stop` is requested.
  void run(const std::stop_token& stop);

 private:
  static constexpr std::size_t kMostWaiting = 256;
  static constexpr std::size_t kMostOpen = 64;
  /// Of one user's processes, before none of them is read any more: their pages come from a file system that does not
  /// answer.
  static constexpr unsigned kMostStuck = 3;

  struct Open {
    std::uint64_t exec_id = 0;
    Fd memory;
    symbolizer::HotSpotModule module;
    std::uint64_t base = 0;
  };

  Result<symbolizer::HotSpotNames> read(const Request& request);
  Result<const Open*> open(const Request& request);

  symbolizer::ModuleTable& modules_;
  symbolizer::GuardedOpener& opener_;
  symbolizer::ModuleReader& reader_;
  BoundedQueue<Request> requests_{kMostWaiting};
  std::mutex mutex_;  ///< guards the answers
  std::vector<Answer> answers_;
  // Of the thread:
  std::unordered_map<ProcessId, Open> open_;
  std::deque<ProcessId> opened_;                       ///< the keys of open_, the oldest first
  std::unordered_map<std::uint32_t, unsigned> stuck_;  ///< by user
};

}  // namespace flamed::daemon
