// SPDX-License-Identifier: Apache-2.0
//
// GoModule: an ELF file that the Go linker wrote, opened for its names and lines. Owns the bytes of its tables, and
// needs the file no more. Any thread.
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
  /// Whether to read what `table().locate()` needs to tell of inlined functions.
  enum class With : std::uint8_t { kNames, kInlines };

  /// Empty: no Go program. One whose tables are damaged is an error; one whose inlining trees can't be found has none.
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
