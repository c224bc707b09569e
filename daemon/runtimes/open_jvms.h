// SPDX-License-Identifier: Apache-2.0
//
// OpenJvms: HotSpot JVMs with their memory and the layout of their structures, shared by all threads that read from
// them. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"
#include "daemon/runtimes/process_memories.h"
#include "runtimes/hotspot/layout.h"
#include "symbolizer/model/hotspot_module.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/process/module_table.h"

namespace flamed::daemon {

class OpenJvms {
 public:
  static constexpr std::size_t kMostOpen = 64;

  /// All of them must outlive it.
  OpenJvms(symbolizer::ModuleTable& modules, ProcessMemories& memories, symbolizer::ModuleReader& reader)
      : modules_(modules), memories_(memories), reader_(reader) {}

  /// A process that has a JVM's library mapped.
  struct Place {
    ProcessMemories::Owner owner{};
    ModuleId library;
    symbolizer::HotSpotMapping mapping{};
  };
  struct Jvm {
    std::shared_ptr<const Fd> memory;
    runtimes::HotSpotLayout layout;
    std::uint64_t base = 0;  ///< what was added to the library's addresses
  };
  /// An error with code EBUSY: it is still starting; with EAGAIN: its library is not open yet, or the worker is away;
  /// with ENOTSUP: it can't be read, and never will.
  Result<std::shared_ptr<const Jvm>> open(const Place& place);

  [[nodiscard]] ProcessMemories& memories() { return memories_; }

 private:
  struct Open {
    std::uint64_t exec_id = 0;
    std::shared_ptr<const Jvm> jvm;
  };

  symbolizer::ModuleTable& modules_;
  ProcessMemories& memories_;
  symbolizer::ModuleReader& reader_;
  std::mutex mutex_;  ///< guards what follows
  std::unordered_map<ProcessId, Open> open_;
  std::deque<ProcessId> opened_;  ///< the keys of open_, the oldest first
};

}  // namespace flamed::daemon
