// SPDX-License-Identifier: Apache-2.0
//
// DwarfValue: one attribute's value as it stands in .debug_info, before what it points at is looked up.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/byte_reader.h"
#include "symbolizer/dwarf/dwarf_abbreviations.h"

namespace flamed::symbolizer {

struct DwarfValue {
  std::uint16_t form = 0;    ///< DW_FORM_*; 0: there is none
  std::uint64_t number = 0;  ///< constants, flags, offsets, indices, addresses
  std::string_view text{};   ///< of DW_FORM_string, in the bytes that were read

  explicit operator bool() const { return form != 0; }
};

/// Bytes that a value of this form takes, where that depends on nothing but the unit.
std::optional<std::uint32_t> dwarf_form_size(std::uint16_t form, const DwarfShape& shape);

/// Reads or passes over one value. A form that nobody has defined makes the cursor fail: where it ends isn't known.
DwarfValue read_dwarf_value(ByteReader& cursor, const DwarfAttribute& attribute, const DwarfShape& shape);
void skip_dwarf_value(ByteReader& cursor, const DwarfAttribute& attribute, const DwarfShape& shape);

}  // namespace flamed::symbolizer
