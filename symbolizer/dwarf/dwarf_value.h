// SPDX-License-Identifier: Apache-2.0
//
// DwarfValue: one attribute's value in .debug_info, before references are followed.
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
  std::string_view text{};   ///< of DW_FORM_string, a view into the input

  explicit operator bool() const { return form != 0; }
};

/// The size of a value of this form in bytes, if it depends only on the unit.
std::optional<std::uint32_t> dwarf_form_size(std::uint16_t form, const DwarfShape& shape);

/// Reads or skips one value. An undefined form makes the cursor fail, since its size is not known.
DwarfValue read_dwarf_value(ByteReader& cursor, const DwarfAttribute& attribute, const DwarfShape& shape);
void skip_dwarf_value(ByteReader& cursor, const DwarfAttribute& attribute, const DwarfShape& shape);

}  // namespace flamed::symbolizer
