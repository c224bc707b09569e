// SPDX-License-Identifier: Apache-2.0
//
// Reads only the code mappings of a process from procfs. Any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace flamed::symbolizer {

/// The unchanged lines of executable mappings in `path`, a process's maps in procfs. The other lines may be hundreds of
/// MiB (a database that maps its files in pieces). More than 16 MiB of executable lines, 65,530 (vm.max_map_count) of
/// 250 bytes, are an error with code EFBIG.
Result<std::string> read_executable_lines(const std::string& path);

}  // namespace flamed::symbolizer
