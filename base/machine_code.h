// SPDX-License-Identifier: Apache-2.0
//
// Machine code of a module as people read it. Plain values: the symbolizer makes them, answers show them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/identity.h"

namespace flamed {

struct Instruction {
  std::uint64_t offset = 0;  ///< in the file, of its first byte
  std::string bytes;         ///< raw; never empty
  std::string text;          ///< in Intel's syntax; empty: these bytes were not decoded

  [[nodiscard]] std::uint64_t end() const { return offset + bytes.size(); }
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// A function's bytes [offset, offset + size) of a file.
struct FunctionCode {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t address = 0;  ///< of the first byte, as the file's own tables and objdump have it
  /// Ascending, without overlaps. Of a long function only those near the places that were asked for.
  std::vector<Instruction> instructions;

  friend bool operator==(const FunctionCode&, const FunctionCode&) = default;
};

/// Code at places in one module.
struct MachineCode {
  std::string reason;  ///< why `functions` lacks code, a phrase; empty if it has all
  /// By offset. One may lie within another; then the place belongs to the one that begins later.
  std::vector<FunctionCode> functions;
};

/// Which code: places in a module, ascending.
struct CodeQuestion {
  ModuleId module;
  std::string build_id;  ///< that the names at these places are from; empty: the file has none
  std::vector<std::uint64_t> offsets;
};

}  // namespace flamed
