// SPDX-License-Identifier: Apache-2.0
//
// What a process has mapped as code, read from procfs without the rest. Any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace flamed::symbolizer {

/// The lines of `path`, a process's maps in procfs, that are of memory to be executed, as they stand there. The others
/// may be hundreds of MiB (a database that maps its files in pieces). More than 16 MiB of those that are wanted, which
/// are 65,530 (vm.max_map_count) of 250 bytes, are an error with code EFBIG.
Result<std::string> read_executable_lines(const std::string& path);

}  // namespace flamed::symbolizer
