// SPDX-License-Identifier: Apache-2.0
//
// Rows by file offset: a running process's mappings have file offsets, not the virtual addresses that the file was
// linked for.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "unwinder/row.h"

namespace flamed::unwinder {

/// File bytes [offset, offset + size) appear at virtual `address`.
struct CodeSegment {
  std::uint64_t address = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// The same rows with file offsets for virtual addresses. `segments` are the executable ones, sorted by address,
/// without overlaps of their addresses; their offsets may be in any order. Fails if two segments have the same bytes of
/// the file, which would make offsets ambiguous, or if the offsets span 4 GiB.
Result<UnwindRows> by_file_offset(UnwindRows rows, std::span<const CodeSegment> segments);

}  // namespace flamed::unwinder
