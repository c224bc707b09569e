// SPDX-License-Identifier: Apache-2.0
//
// Reads what a code object in another process is called, where it comes from, and the lines of its instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtimes/python/layout.h"
#include "runtimes/python/line_table.h"
#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

struct PythonFunction {
  std::string name;  ///< valid UTF-8 of any characters, not empty; qualified from 3.11 on: "Server.run.<locals>.step"
  std::string file;  ///< likewise, as the program was compiled; "<stdin>" and the like where there is none
  std::uint32_t first_line = 0;
  std::vector<LineRun> lines{};

  /// For an instruction in units of two bytes, -1 before the first. 0: it has no line.
  [[nodiscard]] std::uint32_t line_at(std::int64_t instruction) const { return runtimes::line_at(lines, instruction); }
};

/// Longer texts are cut.
inline constexpr std::size_t kMostPythonTextBytes = 4096;
/// Of a longer line table only this much is read.
inline constexpr std::size_t kMostLineTableBytes = std::size_t{64} << 10;

/// `code` is the address of a code object in a process that has the module of `layout` loaded at `base`. An error if
/// there is none, or it changed while it was read.
Result<PythonFunction> read_python_function(RemoteMemory& memory, const PythonLayout& layout, std::uint64_t base,
                                            std::uint64_t code);

}  // namespace flamed::runtimes
