// SPDX-License-Identifier: Apache-2.0
//
// ProcessLook: one reading of a process in /proc/PID. For the ingest thread, like the modules that it adds.
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
  MonotonicTime as_of;        ///< its start: all earlier changes are in it
  MonotonicTime done;         ///< the end of reading the mappings: no later changes are in them
  bool alive = false;         ///< if false, nothing else is valid
  bool leader_ended = false;  ///< its first thread has ended; others run on
  ProcessId id;
  std::int32_t parent_pid = 0;
  std::string comm;
  std::string executable;
  std::shared_ptr<MappingSet> maps;  ///< null: not readable
};

/// Reads the process with the pid. `proc` is where procfs is mounted. Adds files that it has mapped as code to
/// `modules`.
ProcessLook look_at_process(const std::string& proc, std::int32_t pid, const Clock& clock, ModuleTable& modules);

}  // namespace flamed::symbolizer
