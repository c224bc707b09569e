// SPDX-License-Identifier: Apache-2.0
//
// GoModule: the name and line tables of an ELF file of the Go linker. Owns the bytes of the tables, and does not need
// the file any more. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/go/go_line_table.h"

namespace flamed::symbolizer {

class GoModule {
 public:
  /// Whether to read the trees of inlined functions for `table().locate()`.
  enum class With : std::uint8_t { kNames, kInlines };

  /// Empty: not a Go program. Damaged tables are an error; inlining trees that can't be found are left out.
  static Result<std::optional<GoModule>> read(ElfSections& file, With with);

  [[nodiscard]] const GoLineTable& table() const { return table_; }

 private:
  struct Bytes {
    std::string line_table;
    std::string function_data;
  };
  GoModule(std::unique_ptr<const Bytes> bytes, const GoLineTable& table) : bytes_(std::move(bytes)), table_(table) {}

  std::unique_ptr<const Bytes> bytes_;  ///< on the heap: the table refers to them
  GoLineTable table_;
};

}  // namespace flamed::symbolizer
