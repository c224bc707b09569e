// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/memory_opener.h"

#include <fcntl.h>

#include <cerrno>

#include "symbolizer/process/proc_folder.h"

namespace flamed::symbolizer {

Result<Fd> open_memory(const ProcessId& process, const std::string& proc) {
  Fd memory(::open(proc_path(proc, process.pid, "mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory) return Error::from_errno("opening the memory of process " + std::to_string(process.pid));
  // The pid may be another process's by now.
  if (!is_alive(proc, process)) return Error("the process has ended", ESRCH);
  return memory;
}

}  // namespace flamed::symbolizer
