// SPDX-License-Identifier: Apache-2.0
//
// DwarfInfo: the units of one file's .debug_info, and the strings, address ranges and names that their entries refer
// to. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "symbolizer/dwarf/dwarf_abbreviations.h"
#include "symbolizer/dwarf/dwarf_budget.h"
#include "symbolizer/dwarf/dwarf_sections.h"
#include "symbolizer/dwarf/dwarf_value.h"

namespace flamed::symbolizer {

/// Addresses [begin, end).
struct DwarfRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The attributes of an entry with the addresses of its code.
struct DwarfCode {
  DwarfValue low;
  DwarfValue high;
  DwarfValue ranges;

  /// Stores the attribute if it is one of these.
  void take(std::uint16_t name, const DwarfValue& value);
};

/// Offsets are in .debug_info unless said otherwise.
struct DwarfUnit {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  std::uint64_t root = 0;  ///< its first entry
  DwarfShape shape;
  std::uint8_t type = 0;                      ///< DW_UT_*
  std::uint64_t abbreviations = 0;            ///< in .debug_abbrev
  std::uint64_t string_offsets = 0;           ///< in .debug_str_offsets
  std::uint64_t addresses = 0;                ///< in .debug_addr
  std::uint64_t range_offsets = 0;            ///< in .debug_rnglists
  std::uint64_t low_pc = 0;                   ///< the base of its ranges
  std::optional<std::uint64_t> line_program;  ///< in .debug_line
  DwarfCode code;                             ///< of the root
};

class DwarfInfo {
 public:
  /// `fd`, `budget` and `alternate` must outlive it. `alternate` may be null.
  static Result<DwarfInfo> open(int fd, DwarfInfo* alternate, DwarfBudget& budget);

  [[nodiscard]] DwarfSections& sections() { return sections_; }
  [[nodiscard]] DwarfBudget& budget() { return *budget_; }
  /// In the order of the section. Units after damaged data are missing.
  [[nodiscard]] const std::vector<DwarfUnit>& units() const { return units_; }
  /// nullptr if the table can't be read.
  std::shared_ptr<const DwarfAbbreviations> abbreviations(const DwarfUnit& unit);
  /// The compiler's working directory; empty if not known.
  std::string directory(const DwarfUnit& unit);

  /// Adds the addresses of an entry of `unit`, without those of functions that the linker dropped.
  void add_ranges(const DwarfUnit& unit, const DwarfCode& code, std::vector<DwarfRange>& to);
  /// Empty if it can't be read.
  std::string text(const DwarfUnit& unit, const DwarfValue& value);
  /// A string of .debug_str or .debug_line_str.
  std::string text_at(DwarfSection section, std::uint64_t offset);
  /// The name of the function at `offset`: its linkage name, else its name in the source. Empty: it has none.
  const std::string& function_name(std::uint64_t offset);

 private:
  /// An entry of this file or of the alternate one.
  struct Reference {
    DwarfInfo* file = nullptr;
    std::uint64_t offset = 0;
  };

  DwarfInfo(DwarfSections sections, DwarfInfo* alternate, DwarfBudget& budget);
  Status read_units();
  void read_root(DwarfUnit& unit);
  /// Calls `attribute(name, value)` for each attribute of an entry; texts are valid until it returns.
  template <typename Visitor>
  bool read_entry(const DwarfUnit& unit, std::uint64_t offset, Visitor attribute);
  [[nodiscard]] const DwarfUnit* unit_at(std::uint64_t offset) const;
  std::optional<Reference> reference(const DwarfUnit& unit, const DwarfValue& value);
  std::optional<std::uint64_t> address(const DwarfUnit& unit, const DwarfValue& value);
  std::optional<std::uint64_t> address_at(const DwarfUnit& unit, std::uint64_t index);
  void add_range_list(const DwarfUnit& unit, std::uint64_t offset, std::vector<DwarfRange>& to);
  void add_range_pairs(const DwarfUnit& unit, std::uint64_t offset, std::vector<DwarfRange>& to);
  std::string find_name(std::uint64_t offset);

  DwarfSections sections_;
  DwarfInfo* alternate_;
  DwarfBudget* budget_;
  std::vector<DwarfUnit> units_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::shared_ptr<const DwarfAbbreviations>> tables_;
  std::size_t table_bytes_ = 0;
  std::unordered_map<std::uint64_t, std::string> names_;
};

}  // namespace flamed::symbolizer
