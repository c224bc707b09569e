// SPDX-License-Identifier: Apache-2.0
//
// ProcessLook: what /proc/PID shows of a process at one look. Ingest's, as the modules that it enters are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/identity.h"
#include "symbolizer/process/mapping_set.h"
#include "symbolizer/process/module_table.h"

namespace flamed::symbolizer {

struct ProcessLook {
  MonotonicTime as_of;        ///< when it was begun: all that happened before is in it
  MonotonicTime done;         ///< when the mappings had been read: nothing that happened after is in them
  bool alive = false;         ///< of one that is not, nothing else is to be believed
  bool leader_ended = false;  ///< the thread that it began with has; others go on
  ProcessId id;
  std::int32_t parent_pid = 0;
  std::string comm;
  std::string executable;
  std::shared_ptr<MappingSet> maps;  ///< null: not readable
};

/// Of the process that has the pid. `proc` is where procfs is mounted. Files that it has mapped as code are entered
/// into `modules`.
ProcessLook look_at_process(const std::string& proc, std::int32_t pid, const Clock& clock, ModuleTable& modules);

}  // namespace flamed::symbolizer
