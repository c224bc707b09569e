// SPDX-License-Identifier: Apache-2.0
//
// The lines of a code object's instructions. The three formats are those of Objects/lnotab_notes.txt in CPython 3.9 and
// 3.10, and of Objects/locations.md (later InternalDocs/code_objects.md) from 3.11 on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtimes/python/layout.h"
#include "runtimes/runtime_function.h"

namespace flamed::runtimes {

/// Of the beginning of a table: drops an entry that is not there as a whole. False: of such a table nothing tells where
/// it ends, so its last line would count for all other instructions.
bool end_with_whole_entry(PythonLines kind, std::vector<std::byte>& cut);

/// Ascending by `first`, neighbours differ in their lines, at most kMostLineRuns. Instructions are counted in units
/// of two bytes. Any bytes are a table.
std::vector<LineRun> read_line_table(PythonLines kind, std::span<const std::byte> bytes, std::uint32_t first_line);

}  // namespace flamed::runtimes
