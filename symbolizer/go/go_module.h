// SPDX-License-Identifier: Apache-2.0
//
// GoModule: the name and line tables of an ELF file of the Go linker. Owns the bytes of the tables, and does not need
// the file any more. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/go/go_line_table.h"
#include "symbolizer/model/sourced_rows.h"

namespace flamed::symbolizer {

class GoModule {
 public:
  /// Whether to read the trees of inlined functions for `table().locate()`.
  enum class With : std::uint8_t { kNames, kInlines };

  /// Empty: not a Go program. Damaged tables are an error; inlining trees that can't be found are left out.
  static Result<std::optional<GoModule>> read(ElfSections& file, With with);

  [[nodiscard]] const GoLineTable& table() const { return table_; }
  /// The bytes of the file that the functions and their stack depths follow from, headers apart.
  [[nodiscard]] std::span<const FileRange> ranges() const { return ranges_; }

 private:
  struct Bytes {
    std::string line_table;
    std::string function_data;
  };
  GoModule(std::unique_ptr<const Bytes> bytes, const GoLineTable& table, std::vector<FileRange> ranges)
      : bytes_(std::move(bytes)), table_(table), ranges_(std::move(ranges)) {}

  std::unique_ptr<const Bytes> bytes_;  ///< on the heap: the table refers to them
  GoLineTable table_;
  std::vector<FileRange> ranges_;
};

}  // namespace flamed::symbolizer
