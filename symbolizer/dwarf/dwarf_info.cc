// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/dwarf_info.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/byte_reader.h"

namespace flamed::symbolizer {
namespace {

// A browser has 30,000, a file processed by dwz some times as many.
constexpr std::size_t kMaxUnits = 1'000'000;
constexpr std::size_t kMaxTableBytes = std::size_t{32} << 20;
// Function names of heavily templated code come near 64 KiB.
constexpr std::size_t kMaxTextBytes = std::size_t{64} << 10;
// The root of a C++ unit, including the compiler's command line.
constexpr std::size_t kMaxEntryBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxTableSize = std::size_t{64} << 20;
constexpr std::size_t kMaxRanges = 100'000;
// Compilers use three: inlined or concrete -> abstract -> declaration.
constexpr std::size_t kMaxReferences = 16;

std::uint32_t key_of(const DwarfShape& shape) {
  return std::uint32_t{shape.version} << 16 | std::uint32_t{shape.address_bytes} << 8 | shape.offset_bytes;
}

std::size_t at_most(std::uint64_t size, std::size_t limit) {
  return size < limit ? static_cast<std::size_t>(size) : limit;
}

// Linkers set addresses of dropped code to 0, newer versions of lld to the highest address or the one below.
bool is_dropped(std::uint64_t address) { return address == 0 || address >= UINT64_MAX - 1; }

void add_range(std::uint64_t begin, std::uint64_t end, std::vector<DwarfRange>& to) {
  if (!is_dropped(begin) && begin < end) to.push_back({begin, end});
}

// A base of 0 is an ordinary one.
void add_range(std::uint64_t base, std::uint64_t begin, std::uint64_t end, std::vector<DwarfRange>& to) {
  if (base == 0 || !is_dropped(base)) add_range(base + begin, base + end, to);
}

}  // namespace

void DwarfCode::take(std::uint16_t name, const DwarfValue& value) {
  if (name == DW_AT_low_pc) low = value;
  if (name == DW_AT_high_pc) high = value;
  if (name == DW_AT_ranges) ranges = value;
}

DwarfInfo::DwarfInfo(DwarfSections sections, DwarfInfo* alternate, DwarfBudget& budget)
    : sections_(std::move(sections)), alternate_(alternate), budget_(&budget) {}

Result<DwarfInfo> DwarfInfo::open(int fd, DwarfInfo* alternate, DwarfBudget& budget) {
  Result<DwarfSections> sections = DwarfSections::open(fd);
  if (!sections) return std::move(sections).error();
  DwarfInfo info(std::move(*sections), alternate, budget);
  if (Status status = info.read_units(); !status) return std::move(status).error();
  return info;
}

/*
 * A unit's header (DWARF 5, 7.5.1):
 *   u32 length of what follows; 0xffffffff: the 64-bit format, u64 length, and offsets have 8 bytes
 *   u16 version
 *   2 to 4: offset in .debug_abbrev, u8 address size
 *   5:      u8 unit type, u8 address size, offset in .debug_abbrev;
 *           skeletons: u64 id; types: u64 signature, offset of the type
 */
Status DwarfInfo::read_units() {
  const std::uint64_t size = sections_.size(DwarfSection::kInfo);
  for (std::uint64_t offset = 0; offset < size;) {
    ByteReader cursor(sections_.view(DwarfSection::kInfo, offset, 64));
    DwarfUnit unit;
    unit.offset = offset;
    unit.shape.offset_bytes = 4;
    std::uint64_t length = cursor.u32();
    if (length == 0xFFFFFFFF) {
      unit.shape.offset_bytes = 8;
      length = cursor.u64();
    }
    const std::uint64_t body = offset + cursor.position();
    if (!cursor.ok() || length > size - body) break;
    unit.end = offset = body + length;
    const std::uint16_t version = cursor.u16();
    if (version < 2 || version > 5) continue;
    unit.shape.version = static_cast<std::uint8_t>(version);
    unit.type = version == 5 ? cursor.u8() : static_cast<std::uint8_t>(DW_UT_compile);
    if (version == 5) unit.shape.address_bytes = cursor.u8();
    unit.abbreviations = cursor.number(unit.shape.offset_bytes);
    if (version < 5) unit.shape.address_bytes = cursor.u8();
    if (unit.type == DW_UT_skeleton || unit.type == DW_UT_split_compile) cursor.skip(8);
    if (unit.type == DW_UT_type || unit.type == DW_UT_split_type) cursor.skip(8U + unit.shape.offset_bytes);
    unit.root = unit.offset + cursor.position();
    if (!cursor.ok() || unit.root >= unit.end) continue;
    if (unit.shape.address_bytes != 4 && unit.shape.address_bytes != 8) continue;
    if (units_.size() >= kMaxUnits) return Error("more than " + std::to_string(kMaxUnits) + " units in .debug_info");
    if (!budget_->spend(1)) break;
    if (unit.type != DW_UT_type) read_root(unit);
    units_.push_back(unit);
  }
  return {};
}

void DwarfInfo::read_root(DwarfUnit& unit) {
  // Split units' bases begin after the header of their section; other units have attributes for them.
  unit.string_offsets = unit.shape.offset_bytes == 4 ? 8 : 16;
  read_entry(unit, unit.root, [&](std::uint16_t name, const DwarfValue& value) {
    unit.code.take(name, value);
    switch (name) {
      case DW_AT_str_offsets_base:
        unit.string_offsets = value.number;
        break;
      case DW_AT_addr_base:
      case DW_AT_GNU_addr_base:
        unit.addresses = value.number;
        break;
      case DW_AT_rnglists_base:
        unit.range_offsets = value.number;
        break;
      case DW_AT_stmt_list:
        unit.line_program = value.number;
        break;
      default:
        break;
    }
  });
  unit.code.low.text = unit.code.high.text = unit.code.ranges.text = {};
  unit.low_pc = address(unit, unit.code.low).value_or(0);
}

template <typename Visitor>
bool DwarfInfo::read_entry(const DwarfUnit& unit, std::uint64_t offset, Visitor attribute) {
  // First with the bytes at hand; an entry that is longer is read whole, and its visitor called again from the start.
  const std::size_t whole = at_most(unit.end - offset, kMaxEntryBytes);
  for (std::size_t wanted : {at_most(whole, 512), whole}) {
    const std::span<const std::byte> bytes = sections_.view(DwarfSection::kInfo, offset, wanted);
    ByteReader cursor(bytes.first(std::min(bytes.size(), whole)));
    const std::uint64_t code = cursor.uleb();
    if (!cursor.ok() || code == 0) return false;
    std::shared_ptr<const DwarfAbbreviations> table;
    std::optional<DwarfAbbreviations> begin;
    const DwarfAbbreviation* abbreviation = nullptr;
    if (offset == unit.root && !tables_.contains({unit.abbreviations, key_of(unit.shape)})) {
      // Only the root of most units is needed, whose abbreviation is the first of many.
      begin = DwarfAbbreviations::read_until(sections_.view(DwarfSection::kAbbrev, unit.abbreviations, 512), unit.shape,
                                             code, *budget_);
      if (begin) abbreviation = begin->find(code);
    }
    const DwarfAbbreviations* from = begin ? &*begin : nullptr;
    if (abbreviation == nullptr) {
      table = abbreviations(unit);
      from = table.get();
      abbreviation = table != nullptr ? table->find(code) : nullptr;
    }
    if (abbreviation == nullptr || !budget_->spend(1 + abbreviation->count)) return false;
    for (const DwarfAttribute& each : from->attributes(*abbreviation)) {
      const DwarfValue value = read_dwarf_value(cursor, each, unit.shape);
      if (!cursor.ok()) break;
      attribute(each.name, value);
    }
    if (cursor.ok()) return true;
  }
  return false;
}

std::shared_ptr<const DwarfAbbreviations> DwarfInfo::abbreviations(const DwarfUnit& unit) {
  const std::pair key(unit.abbreviations, key_of(unit.shape));
  if (const auto known = tables_.find(key); known != tables_.end()) return known->second;
  const std::uint64_t size = sections_.size(DwarfSection::kAbbrev);
  if (unit.abbreviations >= size) return nullptr;
  const std::size_t whole = at_most(size - unit.abbreviations, kMaxTableSize);
  std::shared_ptr<const DwarfAbbreviations> table;
  for (std::size_t wanted = 4096; table == nullptr; wanted *= 8) {
    wanted = std::min(wanted, whole);
    const auto bytes = sections_.view(DwarfSection::kAbbrev, unit.abbreviations, wanted);
    std::optional<DwarfAbbreviations> read = DwarfAbbreviations::read(bytes, unit.shape, *budget_);
    if (read) table = std::make_shared<const DwarfAbbreviations>(std::move(*read));
    if (wanted >= whole || bytes.size() >= whole || !budget_->spend(1)) break;
  }
  // An unreadable table is cached, too: many units may refer to it.
  const std::size_t bytes = 128 + (table != nullptr ? table->bytes() : 0);
  if (table_bytes_ + bytes > kMaxTableBytes) {
    tables_.clear();
    table_bytes_ = 0;
  }
  table_bytes_ += bytes;
  tables_.emplace(key, table);
  return table;
}

std::string DwarfInfo::directory(const DwarfUnit& unit) {
  std::string directory;
  read_entry(unit, unit.root, [&](std::uint16_t name, const DwarfValue& value) {
    if (name == DW_AT_comp_dir) directory = text(unit, value);
  });
  return directory;
}

const DwarfUnit* DwarfInfo::unit_at(std::uint64_t offset) const {
  const auto behind =
      std::upper_bound(units_.begin(), units_.end(), offset,
                       [](std::uint64_t wanted, const DwarfUnit& unit) { return wanted < unit.offset; });
  if (behind == units_.begin()) return nullptr;
  const DwarfUnit& unit = *std::prev(behind);
  return offset >= unit.root && offset < unit.end ? &unit : nullptr;
}

std::optional<DwarfInfo::Reference> DwarfInfo::reference(const DwarfUnit& unit, const DwarfValue& value) {
  switch (value.form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
      return Reference{this, unit.offset + value.number};
    case DW_FORM_ref_addr:
      return Reference{this, value.number};
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
      if (alternate_ == nullptr) return std::nullopt;
      return Reference{alternate_, value.number};
    default:
      return std::nullopt;
  }
}

std::optional<std::uint64_t> DwarfInfo::address_at(const DwarfUnit& unit, std::uint64_t index) {
  const std::size_t bytes = unit.shape.address_bytes;
  if (index > sections_.size(DwarfSection::kAddr) / bytes) return std::nullopt;
  ByteReader cursor(sections_.view(DwarfSection::kAddr, unit.addresses + index * bytes, bytes));
  const std::uint64_t address = cursor.number(bytes);
  if (!cursor.ok()) return std::nullopt;
  return address;
}

std::optional<std::uint64_t> DwarfInfo::address(const DwarfUnit& unit, const DwarfValue& value) {
  switch (value.form) {
    case DW_FORM_addr:
      return value.number;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
      return address_at(unit, value.number);
    default:
      return std::nullopt;
  }
}

void DwarfInfo::add_ranges(const DwarfUnit& unit, const DwarfCode& code, std::vector<DwarfRange>& to) {
  if (code.ranges) {
    if (unit.shape.version < 5) return add_range_pairs(unit, code.ranges.number, to);
    std::uint64_t offset = code.ranges.number;
    if (code.ranges.form == DW_FORM_rnglistx) {
      const std::size_t bytes = unit.shape.offset_bytes;
      if (offset > sections_.size(DwarfSection::kRngLists) / bytes) return;
      ByteReader cursor(sections_.view(DwarfSection::kRngLists, unit.range_offsets + offset * bytes, bytes));
      offset = unit.range_offsets + cursor.number(bytes);
      if (!cursor.ok()) return;
    }
    return add_range_list(unit, offset, to);
  }
  const std::optional<std::uint64_t> begin = address(unit, code.low);
  if (!begin || !code.high) return;
  // A constant is a length.
  add_range(*begin, address(unit, code.high).value_or(*begin + code.high.number), to);
}

/*
 * .debug_ranges (DWARF 4, 2.17.3): pairs of addresses relative to a base, at first the unit's. (highest address, base)
 * sets the base, (0, 0) ends.
 */
void DwarfInfo::add_range_pairs(const DwarfUnit& unit, std::uint64_t offset, std::vector<DwarfRange>& to) {
  const std::size_t bytes = unit.shape.address_bytes;
  const std::uint64_t highest = bytes == 8 ? UINT64_MAX : UINT32_MAX;
  std::uint64_t base = unit.low_pc;
  for (std::size_t i = 0; i < kMaxRanges && budget_->spend(1); ++i, offset += 2 * bytes) {
    ByteReader cursor(sections_.view(DwarfSection::kRanges, offset, 2 * bytes));
    const std::uint64_t begin = cursor.number(bytes);
    const std::uint64_t end = cursor.number(bytes);
    if (!cursor.ok() || (begin == 0 && end == 0)) return;
    if (begin == highest) {
      base = end;
    } else {
      add_range(base, begin, end, to);
    }
  }
}

// .debug_rnglists (DWARF 5, 7.25): a u8 gives the kind of each entry.
void DwarfInfo::add_range_list(const DwarfUnit& unit, std::uint64_t offset, std::vector<DwarfRange>& to) {
  const std::size_t bytes = unit.shape.address_bytes;
  std::uint64_t base = unit.low_pc;
  for (std::size_t i = 0; i < kMaxRanges && budget_->spend(1); ++i) {
    // One entry has a byte and two numbers.
    const std::span<const std::byte> view = sections_.view(DwarfSection::kRngLists, offset, 32);
    ByteReader cursor(view);
    switch (cursor.u8()) {
      case DW_RLE_base_addressx:
        base = address_at(unit, cursor.uleb()).value_or(0);
        break;
      case DW_RLE_startx_endx: {
        const std::uint64_t begin = address_at(unit, cursor.uleb()).value_or(0);
        add_range(begin, address_at(unit, cursor.uleb()).value_or(0), to);
        break;
      }
      case DW_RLE_startx_length: {
        const std::uint64_t begin = address_at(unit, cursor.uleb()).value_or(0);
        add_range(begin, begin + cursor.uleb(), to);
        break;
      }
      case DW_RLE_offset_pair: {
        const std::uint64_t begin = cursor.uleb();
        const std::uint64_t end = cursor.uleb();
        add_range(base, begin, end, to);
        break;
      }
      case DW_RLE_base_address:
        base = cursor.number(bytes);
        break;
      case DW_RLE_start_end: {
        const std::uint64_t begin = cursor.number(bytes);
        add_range(begin, cursor.number(bytes), to);
        break;
      }
      case DW_RLE_start_length: {
        const std::uint64_t begin = cursor.number(bytes);
        add_range(begin, begin + cursor.uleb(), to);
        break;
      }
      default:  // DW_RLE_end_of_list, and undefined kinds
        return;
    }
    if (!cursor.ok()) return;
    offset += cursor.position();
  }
}

std::string DwarfInfo::text_at(DwarfSection section, std::uint64_t offset) {
  for (const std::size_t wanted : {std::size_t{256}, kMaxTextBytes}) {
    ByteReader cursor(sections_.view(section, offset, wanted));
    const std::string_view text = cursor.text();
    if (cursor.ok()) return std::string(text.substr(0, kMaxTextBytes));
  }
  return {};
}

std::string DwarfInfo::text(const DwarfUnit& unit, const DwarfValue& value) {
  switch (value.form) {
    case DW_FORM_string:
      return std::string(value.text.substr(0, kMaxTextBytes));
    case DW_FORM_strp:
      return text_at(DwarfSection::kStr, value.number);
    case DW_FORM_line_strp:
      return text_at(DwarfSection::kLineStr, value.number);
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_strp_sup:
      return alternate_ != nullptr ? alternate_->text_at(DwarfSection::kStr, value.number) : std::string();
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index: {
      const std::size_t bytes = unit.shape.offset_bytes;
      if (value.number > sections_.size(DwarfSection::kStrOffsets) / bytes) return {};
      ByteReader cursor(sections_.view(DwarfSection::kStrOffsets, unit.string_offsets + value.number * bytes, bytes));
      const std::uint64_t offset = cursor.number(bytes);
      return cursor.ok() ? text_at(DwarfSection::kStr, offset) : std::string();
    }
    default:
      return {};
  }
}

const std::string& DwarfInfo::function_name(std::uint64_t offset) {
  const auto [place, is_new] = names_.try_emplace(offset);
  if (is_new) place->second = find_name(offset);
  return place->second;
}

std::string DwarfInfo::find_name(std::uint64_t offset) {
  std::string name;
  std::array<Reference, kMaxReferences> queue{Reference{this, offset}};
  std::size_t known = 1;
  for (std::size_t i = 0; i < known; ++i) {
    DwarfInfo& file = *queue[i].file;
    const DwarfUnit* unit = file.unit_at(queue[i].offset);
    if (unit == nullptr) continue;
    std::string linkage_name;
    std::string own_name;
    std::size_t next = known;
    file.read_entry(*unit, queue[i].offset, [&](std::uint16_t attribute, const DwarfValue& value) {
      switch (attribute) {
        case DW_AT_linkage_name:
        case DW_AT_MIPS_linkage_name:
          linkage_name = file.text(*unit, value);
          break;
        case DW_AT_name:
          own_name = file.text(*unit, value);
          break;
        case DW_AT_abstract_origin:
        case DW_AT_specification:
          if (next < queue.size()) {
            if (const std::optional<Reference> to = file.reference(*unit, value)) queue[next++] = *to;
          }
          break;
        default:
          break;
      }
    });
    known = next;
    if (!linkage_name.empty()) return linkage_name;
    if (name.empty()) name = std::move(own_name);
  }
  return name;
}

}  // namespace flamed::symbolizer
