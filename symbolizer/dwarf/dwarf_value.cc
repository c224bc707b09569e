// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/dwarf_value.h"

#include <dwarf.h>

namespace flamed::symbolizer {
namespace {

// DW_FORM_indirect: the form precedes the value. Another indirect form, or one whose value would be in the
// abbreviation, ends the reading.
DwarfAttribute direct(ByteReader& cursor) {
  const std::uint64_t form = cursor.uleb();
  DwarfAttribute attribute;
  attribute.form = form > 0xFFFF || form == DW_FORM_indirect || form == DW_FORM_implicit_const
                       ? std::uint16_t{0}
                       : static_cast<std::uint16_t>(form);
  return attribute;
}

}  // namespace

std::optional<std::uint32_t> dwarf_form_size(std::uint16_t form, const DwarfShape& shape) {
  switch (form) {
    case DW_FORM_implicit_const:
    case DW_FORM_flag_present:
      return 0;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
      return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sup8:
    case DW_FORM_ref_sig8:
      return 8;
    case DW_FORM_data16:
      return 16;
    case DW_FORM_addr:
      return shape.address_bytes;
    case DW_FORM_ref_addr:  // an address in DWARF 2
      return shape.version <= 2 ? shape.address_bytes : shape.offset_bytes;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      return shape.offset_bytes;
    default:
      return std::nullopt;
  }
}

DwarfValue read_dwarf_value(ByteReader& cursor, const DwarfAttribute& attribute, const DwarfShape& shape) {
  DwarfValue value;
  value.form = attribute.form;
  switch (attribute.form) {
    case DW_FORM_indirect:
      return read_dwarf_value(cursor, direct(cursor), shape);
    case DW_FORM_implicit_const:
      value.number = static_cast<std::uint64_t>(attribute.constant);
      return value;
    case DW_FORM_flag_present:
      value.number = 1;
      return value;
    case DW_FORM_string:
      value.text = cursor.text();
      return value;
    case DW_FORM_sdata:
      value.number = static_cast<std::uint64_t>(cursor.sleb());
      return value;
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      value.number = cursor.uleb();
      return value;
    case DW_FORM_data16:
    case DW_FORM_block:
    case DW_FORM_exprloc:
    case DW_FORM_block1:
    case DW_FORM_block2:
    case DW_FORM_block4:
      skip_dwarf_value(cursor, attribute, shape);
      return value;
    default:
      break;
  }
  const std::optional<std::uint32_t> size = dwarf_form_size(attribute.form, shape);
  value.number = cursor.number(size.value_or(0));
  return value;
}

void skip_dwarf_value(ByteReader& cursor, const DwarfAttribute& attribute, const DwarfShape& shape) {
  switch (attribute.form) {
    case DW_FORM_indirect:
      return skip_dwarf_value(cursor, direct(cursor), shape);
    case DW_FORM_string:
      static_cast<void>(cursor.text());
      return;
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      return cursor.skip_leb();
    case DW_FORM_block:
    case DW_FORM_exprloc:
      return cursor.skip(cursor.uleb());
    case DW_FORM_block1:
      return cursor.skip(cursor.u8());
    case DW_FORM_block2:
      return cursor.skip(cursor.u16());
    case DW_FORM_block4:
      return cursor.skip(cursor.u32());
    default:
      break;
  }
  const std::optional<std::uint32_t> size = dwarf_form_size(attribute.form, shape);
  if (size) return cursor.skip(*size);
  cursor.skip(cursor.left() + std::uint64_t{1});
}

}  // namespace flamed::symbolizer
