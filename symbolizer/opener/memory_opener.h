// SPDX-License-Identifier: Apache-2.0
//
// Opens the memory of a process.
#pragma once

#include <string>

#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"

namespace flamed::symbolizer {

/// For reading. The descriptor belongs to the memory that the process has now: after its exec or end there is nothing
/// to read. `proc` is where procfs is mounted.
Result<Fd> open_memory(const ProcessId& process, const std::string& proc);

}  // namespace flamed::symbolizer
