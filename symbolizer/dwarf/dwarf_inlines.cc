// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/dwarf_inlines.h"

#include <dwarf.h>

#include <algorithm>
#include <memory>

#include "base/byte_reader.h"

namespace flamed::symbolizer {
namespace {

// Template-heavy and Rust code reaches 300: each inlined call may add a block.
constexpr std::size_t kMaxDepth = 4096;
// One unit may be a whole program (link-time optimisation).
constexpr std::uint64_t kMaxUnitBytes = std::uint64_t{1} << 30;

// Entries without code below them. Classes may have code: those of lambdas have their operator().
bool holds_no_code(std::uint16_t tag) {
  switch (tag) {
    case DW_TAG_enumeration_type:
    case DW_TAG_array_type:
    case DW_TAG_subroutine_type:
    case DW_TAG_call_site:
    case DW_TAG_GNU_call_site:
      return true;
    default:
      return false;
  }
}

class Walk {
 public:
  Walk(DwarfInfo& info, const DwarfUnit& unit, std::span<const std::uint64_t> addresses)
      : info_(info), unit_(unit), addresses_(addresses) {
    found_.innermost.assign(addresses.size(), DwarfScope::kNone);
  }

  DwarfInlines run() {
    table_ = info_.abbreviations(unit_);
    std::vector<std::byte> storage;
    const std::uint64_t size = unit_.end - unit_.offset;
    if (table_ == nullptr || size > kMaxUnitBytes) return std::move(found_);
    const auto bytes =
        info_.sections().keep(DwarfSection::kInfo, unit_.offset, static_cast<std::size_t>(size), storage);
    ByteReader cursor(bytes, static_cast<std::size_t>(unit_.root - unit_.offset));
    // The scope of the children of each entry on the path.
    std::vector<std::uint32_t> outer;
    while (cursor.ok() && cursor.left() != 0 && info_.budget().spend(1)) {
      const std::size_t position = cursor.position();
      const std::uint64_t code = cursor.uleb();
      if (code == 0) {
        if (outer.empty()) break;
        outer.pop_back();
        if (outer.empty()) break;
        continue;
      }
      const DwarfAbbreviation* entry = table_->find(code);
      if (entry == nullptr) break;
      std::uint32_t scope = outer.empty() ? DwarfScope::kNone : outer.back();
      bool is_needless = entry->has_children && entry->has_sibling && holds_no_code(entry->tag);
      if ((entry->tag == DW_TAG_subprogram || entry->tag == DW_TAG_inlined_subroutine) && entry->has_code) {
        const std::uint32_t inner = read_scope(cursor, *entry, position, scope);
        // Calls inlined into an unneeded scope are not needed either. Other functions may be nested in it.
        if (inner == DwarfScope::kNone && entry->tag == DW_TAG_inlined_subroutine) is_needless = true;
        scope = inner;
      } else {
        if (entry->tag == DW_TAG_subprogram) scope = DwarfScope::kNone;
        if (!is_needless && entry->size != DwarfAbbreviation::kVariable) {
          cursor.skip(entry->size);
        } else {
          sibling_ = 0;
          for (const DwarfAttribute& attribute : table_->attributes(*entry)) {
            if (attribute.name == DW_AT_sibling && is_needless) {
              take_sibling(read_dwarf_value(cursor, attribute, unit_.shape));
            } else {
              skip_dwarf_value(cursor, attribute, unit_.shape);
            }
          }
        }
      }
      if (!entry->has_children) {
        if (outer.empty()) break;  // the root has none
        continue;
      }
      // Only forward, so that entries can't form a loop.
      if (is_needless && sibling_ > cursor.position() && sibling_ < bytes.size()) {
        cursor.seek(sibling_);
        continue;
      }
      if (outer.size() >= kMaxDepth) break;
      outer.push_back(scope);
    }
    return std::move(found_);
  }

 private:
  void take_sibling(const DwarfValue& value) {
    switch (value.form) {
      case DW_FORM_ref1:
      case DW_FORM_ref2:
      case DW_FORM_ref4:
      case DW_FORM_ref8:
      case DW_FORM_ref_udata:
        sibling_ = static_cast<std::size_t>(value.number);
        break;
      default:
        break;
    }
  }

  /// Reads the attributes of a function with code. kNone: none of the addresses is in it.
  std::uint32_t read_scope(ByteReader& cursor, const DwarfAbbreviation& entry, std::size_t position,
                           std::uint32_t outer) {
    DwarfScope scope;
    DwarfCode code;
    sibling_ = 0;
    for (const DwarfAttribute& attribute : table_->attributes(entry)) {
      switch (attribute.name) {
        case DW_AT_low_pc:
        case DW_AT_high_pc:
        case DW_AT_ranges:
          code.take(attribute.name, read_dwarf_value(cursor, attribute, unit_.shape));
          break;
        case DW_AT_call_file:
          scope.call_file = read_dwarf_value(cursor, attribute, unit_.shape).number;
          scope.has_call_file = true;
          break;
        case DW_AT_call_line:
          scope.call_line = static_cast<std::uint32_t>(read_dwarf_value(cursor, attribute, unit_.shape).number);
          break;
        case DW_AT_sibling:
          take_sibling(read_dwarf_value(cursor, attribute, unit_.shape));
          break;
        default:
          skip_dwarf_value(cursor, attribute, unit_.shape);
          break;
      }
    }
    if (!cursor.ok()) return DwarfScope::kNone;
    info_.budget().spend(entry.count);
    ranges_.clear();
    info_.add_ranges(unit_, code, ranges_);
    std::uint32_t index = DwarfScope::kNone;
    for (const DwarfRange& range : ranges_) {
      auto at = std::lower_bound(addresses_.begin(), addresses_.end(), range.begin);
      for (; at != addresses_.end() && *at < range.end; ++at) {
        if (index == DwarfScope::kNone) {
          index = static_cast<std::uint32_t>(found_.scopes.size());
          scope.entry = unit_.offset + position;
          scope.is_inlined = entry.tag == DW_TAG_inlined_subroutine;
          if (scope.is_inlined) scope.outer = outer;
          found_.scopes.push_back(scope);
        }
        if (!info_.budget().spend(1)) return index;
        found_.innermost[static_cast<std::size_t>(at - addresses_.begin())] = index;
      }
    }
    return index;
  }

  DwarfInfo& info_;
  const DwarfUnit& unit_;
  const std::span<const std::uint64_t> addresses_;
  std::shared_ptr<const DwarfAbbreviations> table_;
  std::size_t sibling_ = 0;  ///< of the entry read last, in the unit; 0: not known
  std::vector<DwarfRange> ranges_;
  DwarfInlines found_;
};

}  // namespace

DwarfInlines read_dwarf_inlines(DwarfInfo& info, const DwarfUnit& unit, std::span<const std::uint64_t> addresses) {
  return Walk(info, unit, addresses).run();
}

}  // namespace flamed::symbolizer
