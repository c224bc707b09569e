// SPDX-License-Identifier: Apache-2.0
//
// Perf maps: /tmp/perf-PID.map, the text file in which just-in-time compilers list their code. One line for each piece
// of code, "START SIZE name" with both numbers in hexadecimal; names may have blanks. Described in the kernel's
// tools/perf/Documentation/jit-interface.txt.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "symbolizer/model/symbol_table.h"

namespace flamed::symbolizer {

/// Only the last bytes of a larger file are read: they have the newest entries.
inline constexpr std::size_t kMaxPerfMapBytes = std::size_t{64} << 20;

struct PerfMap {
  SymbolTable functions;      ///< by address in the process
  std::size_t entries = 0;    ///< well-formed lines
  std::size_t bad_lines = 0;  ///< other lines; left out
};

/// Later lines override earlier ones. Pure. Fails if there are lines and none of them is well-formed, or if the names
/// of the table exceed a limit: a few ranges over many others can repeat their names often.
Result<PerfMap> parse_perf_map(std::string_view text);

/// From an open regular file, whose position is neither used nor changed.
Result<SymbolTable> read_perf_map(int fd);

}  // namespace flamed::symbolizer
