// SPDX-License-Identifier: Apache-2.0
//
// DwarfAbbreviations: one decoded table of .debug_abbrev: the attributes of a unit's entries, and their forms. A value;
// any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "symbolizer/dwarf/dwarf_budget.h"

namespace flamed::symbolizer {

/// Determines the sizes of a unit's attributes.
struct DwarfShape {
  std::uint8_t version = 0;
  std::uint8_t address_bytes = 0;  ///< 4 or 8
  std::uint8_t offset_bytes = 0;   ///< 4, or 8 in the 64-bit format of DWARF

  friend bool operator==(const DwarfShape&, const DwarfShape&) = default;
};

struct DwarfAttribute {
  std::uint16_t name = 0;     ///< DW_AT_*
  std::uint16_t form = 0;     ///< DW_FORM_*
  std::int64_t constant = 0;  ///< of DW_FORM_implicit_const
};

struct DwarfAbbreviation {
  static constexpr std::uint32_t kVariable = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t code = 0;
  std::uint32_t first = 0;  ///< of its attributes
  std::uint16_t count = 0;
  std::uint16_t tag = 0;           ///< DW_TAG_*
  std::uint32_t size = kVariable;  ///< of the attributes' values in bytes, if it is the same for all entries
  bool has_children = false;
  bool has_code = false;     ///< names addresses
  bool has_sibling = false;  ///< has the position of the entry after its children
};

class DwarfAbbreviations {
 public:
  /// Decodes the table at the beginning of `bytes`. nullopt if it is incomplete, or larger than compilers make them.
  static std::optional<DwarfAbbreviations> read(std::span<const std::byte> bytes, const DwarfShape& shape,
                                                DwarfBudget& budget);
  /// The same, but only up to the abbreviation with this code.
  static std::optional<DwarfAbbreviations> read_until(std::span<const std::byte> bytes, const DwarfShape& shape,
                                                      std::uint64_t code, DwarfBudget& budget);

  [[nodiscard]] const DwarfAbbreviation* find(std::uint64_t code) const {
    if (code - 1 < entries_.size() && entries_[static_cast<std::size_t>(code - 1)].code == code) {
      return &entries_[static_cast<std::size_t>(code - 1)];
    }
    return search(code);
  }
  [[nodiscard]] std::span<const DwarfAttribute> attributes(const DwarfAbbreviation& of) const {
    return std::span(attributes_).subspan(of.first, of.count);
  }
  [[nodiscard]] std::size_t bytes() const {
    return entries_.capacity() * sizeof(DwarfAbbreviation) + attributes_.capacity() * sizeof(DwarfAttribute);
  }

 private:
  [[nodiscard]] const DwarfAbbreviation* search(std::uint64_t code) const;
  std::vector<DwarfAbbreviation> entries_;  ///< by code
  std::vector<DwarfAttribute> attributes_;
};

}  // namespace flamed::symbolizer
