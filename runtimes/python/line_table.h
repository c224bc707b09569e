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

namespace flamed::runtimes {

/// From instruction `first` on, up to the next run: this line. 0: none.
struct LineRun {
  std::uint32_t first = 0;
  std::uint32_t line = 0;

  friend bool operator==(const LineRun&, const LineRun&) = default;
};

/// At most this many; the rest of a longer table is one run without a line.
inline constexpr std::size_t kMostLineRuns = 8192;

/// Ascending by `first`, neighbours differ in their lines. Any bytes are a table.
std::vector<LineRun> read_line_table(PythonLines kind, std::span<const std::byte> bytes, std::uint32_t first_line);

/// Instructions are counted in units of two bytes. Of -1, before the first, it is the first run's. 0: not known.
std::uint32_t line_at(std::span<const LineRun> runs, std::int64_t instruction);

}  // namespace flamed::runtimes
