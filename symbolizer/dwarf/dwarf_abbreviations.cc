// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/dwarf_abbreviations.h"

#include <dwarf.h>

#include <algorithm>

#include "base/byte_reader.h"
#include "symbolizer/dwarf/dwarf_value.h"

namespace flamed::symbolizer {
namespace {

// Compilers write at most 20 attributes per entry, and some thousand abbreviations per unit.
constexpr std::size_t kMaxAttributes = 256;
constexpr std::size_t kMaxAbbreviations = std::size_t{1} << 20;

}  // namespace

std::optional<DwarfAbbreviations> DwarfAbbreviations::read(std::span<const std::byte> bytes, const DwarfShape& shape,
                                                           DwarfBudget& budget) {
  return read_until(bytes, shape, 0, budget);
}

/*
 * A table (DWARF 5, 7.5.3) is a sequence of
 *   ULEB code (0: the end), ULEB tag, u8 has children, pairs of ULEB name and ULEB form, ended by a pair of zeros;
 *   behind the form DW_FORM_implicit_const stands the SLEB value.
 */
std::optional<DwarfAbbreviations> DwarfAbbreviations::read_until(std::span<const std::byte> bytes,
                                                                 const DwarfShape& shape, std::uint64_t code,
                                                                 DwarfBudget& budget) {
  DwarfAbbreviations table;
  ByteReader cursor(bytes);
  bool is_sorted = true;
  while (true) {
    DwarfAbbreviation entry;
    entry.code = cursor.uleb();
    if (!cursor.ok()) return std::nullopt;
    if (entry.code == 0) break;
    const std::uint64_t tag = cursor.uleb();
    // Unknown ones beyond 16 bits are skipped like all unknown tags.
    entry.tag = tag <= 0xFFFF ? static_cast<std::uint16_t>(tag) : std::uint16_t{0};
    entry.has_children = cursor.u8() != 0;
    entry.first = static_cast<std::uint32_t>(table.attributes_.size());
    std::uint64_t size = 0;
    bool is_fixed = true;
    while (true) {
      const std::uint64_t name = cursor.uleb();
      const std::uint64_t form = cursor.uleb();
      if (!cursor.ok()) return std::nullopt;
      if (name == 0 && form == 0) break;
      DwarfAttribute attribute;
      attribute.name = name <= 0xFFFF ? static_cast<std::uint16_t>(name) : std::uint16_t{0};
      attribute.form = form <= 0xFFFF ? static_cast<std::uint16_t>(form) : std::uint16_t{0};
      if (form == DW_FORM_implicit_const) attribute.constant = cursor.sleb();
      if (++entry.count > kMaxAttributes) return std::nullopt;
      table.attributes_.push_back(attribute);
      const std::optional<std::uint32_t> bytes_of = dwarf_form_size(attribute.form, shape);
      is_fixed = is_fixed && bytes_of;
      if (bytes_of) size += *bytes_of;
      entry.has_code = entry.has_code || attribute.name == DW_AT_low_pc || attribute.name == DW_AT_ranges;
      entry.has_sibling = entry.has_sibling || attribute.name == DW_AT_sibling;
    }
    if (is_fixed) entry.size = static_cast<std::uint32_t>(size);
    if (table.entries_.size() >= kMaxAbbreviations || !budget.spend(1 + entry.count)) return std::nullopt;
    is_sorted = is_sorted && (table.entries_.empty() || table.entries_.back().code < entry.code);
    table.entries_.push_back(entry);
    if (code != 0 && entry.code == code) break;
  }
  if (!is_sorted) {
    std::stable_sort(table.entries_.begin(), table.entries_.end(),
                     [](const auto& a, const auto& b) { return a.code < b.code; });
  }
  return table;
}

const DwarfAbbreviation* DwarfAbbreviations::search(std::uint64_t code) const {
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), code,
                                      [](const auto& entry, std::uint64_t wanted) { return entry.code < wanted; });
  return found == entries_.end() || found->code != code ? nullptr : &*found;
}

}  // namespace flamed::symbolizer
