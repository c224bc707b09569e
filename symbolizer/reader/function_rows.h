// SPDX-License-Identifier: Apache-2.0
//
// Unwind rows of single functions, found by the search table of .eh_frame_hdr: for a large file of which few functions
// are needed. Reads some hundred bytes for each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "unwinder/row.h"

namespace flamed::symbolizer {

/// One for each file offset, in order: the rows, by file offset, of the function there, from its first byte to its
/// last, or of arm64's stubs there. No rows: no function is described there, or the file has no search table.
Result<std::vector<unwinder::UnwindRows>> read_function_rows(int fd, std::span<const std::uint64_t> offsets);

}  // namespace flamed::symbolizer
