// SPDX-License-Identifier: Apache-2.0
//
// Perf maps: /tmp/perf-PID.map, the text in which just-in-time compilers say what they put where. One line for each
// piece of code, "START SIZE name" with both numbers in hexadecimal; names may hold blanks. Described in the kernel's
// tools/perf/Documentation/jit-interface.txt.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "symbolizer/model/symbol_table.h"

namespace flamed::symbolizer {

/// More of a file is not read: the newest entries, at its end, count.
inline constexpr std::size_t kMaxPerfMapBytes = std::size_t{64} << 20;

struct PerfMap {
  SymbolTable functions;      ///< by address in the process
  std::size_t entries = 0;    ///< lines that name code
  std::size_t bad_lines = 0;  ///< lines that do not; left out
};

/// Later lines win over earlier ones. Pure. Fails when there are lines and none of them is of this form, or when the
/// names of the finished table exceed a limit: a few ranges over many others can repeat theirs often.
Result<PerfMap> parse_perf_map(std::string_view text);

/// From an open regular file, whose position does not matter and is not changed.
Result<SymbolTable> read_perf_map(int fd);

}  // namespace flamed::symbolizer
