// SPDX-License-Identifier: Apache-2.0
//
// DwarfLines: one line program of .debug_line: the source lines of addresses. Its rows are not stored: a large program
// has millions, and only a few are needed. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "symbolizer/dwarf/dwarf_info.h"

namespace flamed::symbolizer {

/// An address to look up, and the result.
struct DwarfLineQuery {
  std::uint64_t address = 0;
  std::uint64_t file = 0;  ///< see DwarfLines::path
  std::uint32_t line = 0;  ///< 0: the compiler gives no line for it
  bool found = false;
};

class DwarfLines {
 public:
  /// nullopt if the unit has no line program, or its header can't be read. `info` must outlive it.
  static std::optional<DwarfLines> open(DwarfInfo& info, const DwarfUnit& unit);

  /// Answers the queries, which are sorted by address.
  void find(std::span<DwarfLineQuery> queries);
  /// The path of a file number in rows and DW_AT_call_file; empty: no such file.
  const std::string& path(std::uint64_t file);

 private:
  struct Entry {
    DwarfValue name;
    std::uint64_t directory = 0;
    std::optional<std::string> path;
  };

  DwarfLines(DwarfInfo& info, const DwarfUnit& unit) : info_(&info), unit_(&unit) {}
  bool read_header(std::uint64_t offset);
  bool read_names(ByteReader& cursor);
  bool read_entries(ByteReader& cursor, std::vector<Entry>& to);
  std::string find_path(const Entry& entry);

  DwarfInfo* info_;
  const DwarfUnit* unit_;
  std::vector<std::byte> storage_;
  std::span<const std::byte> bytes_;  ///< of the whole program
  std::size_t start_ = 0;             ///< of the rows' instructions in it
  DwarfShape shape_;
  std::uint8_t instruction_bytes_ = 1;
  std::int8_t line_base_ = 0;
  std::uint8_t line_range_ = 0;
  std::uint8_t opcode_base_ = 0;
  std::span<const std::byte> operand_counts_;
  std::vector<Entry> directories_;
  std::vector<Entry> files_;
  std::string compiled_in_;
  bool knows_compiled_in_ = false;
};

}  // namespace flamed::symbolizer
