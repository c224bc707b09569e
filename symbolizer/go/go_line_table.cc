// SPDX-License-Identifier: Apache-2.0
//
// Layouts from Go's runtime/symtab.go (pcHeader, functab, pcvalue), runtime/runtime2.go (_func), runtime/symtabinl.go
// (inlinedCall) and debug/gosym/pclntab.go, of Go 1.15 to 1.24.
#include "symbolizer/go/go_line_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint64_t kMaxFunctions = 4'000'000;
constexpr std::size_t kMaxFileBytes = 4095;  // PATH_MAX without its NUL
constexpr std::size_t kMaxInlineDepth = 200;
// Of a function's lines; the largest generated ones have some ten thousand.
constexpr std::uint32_t kMaxSteps = 4'000'000;
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Indexes of the runtime's tables (internal/abi/symtab.go: PCDATA_InlTreeIndex).
constexpr std::uint32_t kInlineTreeIndex = 2;

template <typename T>
std::optional<T> read(std::string_view bytes, std::uint64_t at) {
  T value{};
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) return std::nullopt;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::optional<std::uint64_t> read_pointer(std::string_view bytes, std::uint64_t at, std::uint32_t pointer_bytes) {
  if (pointer_bytes == 8) return read<std::uint64_t>(bytes, at);
  return read<std::uint32_t>(bytes, at);
}

/// The string at `at` up to its NUL; cut at `limit` bytes, empty if it is not terminated.
std::string_view string_at(std::string_view bytes, std::uint64_t at, std::size_t limit) {
  if (at >= bytes.size()) return {};
  const std::string_view rest = bytes.substr(at, limit + 1);
  const std::size_t end = rest.find('\0');
  if (end != std::string_view::npos) return rest.substr(0, end);
  return rest.size() > limit ? rest.substr(0, limit) : std::string_view();
}

/// Base 128, least significant first, at most 32 bits. Advances `at`.
std::optional<std::uint32_t> read_varint(std::string_view bytes, std::uint64_t& at) {
  std::uint32_t value = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (at >= bytes.size()) return std::nullopt;
    const auto byte = static_cast<std::uint8_t>(bytes[at++]);
    value |= (std::uint32_t{byte} & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

}  // namespace

/// Sizes and offsets that differ between formats, in bytes.
struct GoLineTable::Layout {
  bool relative;               ///< functions and function data are 32-bit offsets; otherwise addresses
  std::uint32_t record_bytes;  ///< of _func after its entry, up to pcdata
  bool has_unit;               ///< _func.cuOffset
  std::uint32_t tree_index;    ///< FUNCDATA_InlTree
  std::uint32_t call_bytes;    ///< of an inlinedCall
  std::uint32_t call_name;     ///< offset of the name in it
  std::uint32_t call_parent_pc;
};

/// A _func: { entry, nameoff, args, deferreturn, pcsp, pcfile, pcln, npcdata, [cuOffset], [startLine], funcID, flag,
/// padding, nfuncdata (8 bits) }, 32 bits each unless noted; followed by pcdata[npcdata] and funcdata[nfuncdata].
struct GoLineTable::Record {
  std::uint64_t entry;
  std::uint64_t end;
  std::uint32_t name;
  std::uint32_t stack_table;
  std::uint32_t file_table;
  std::uint32_t line_table;
  std::uint32_t pc_data_count;
  std::uint32_t function_data_count;
  std::uint32_t unit;
  std::uint64_t pc_data;  ///< offset in the line table
};

const GoLineTable::Layout& GoLineTable::layout() const {
  // By Format. Up to Go 1.15 there was one more FUNCDATA before the tree.
  static constexpr std::array<Layout, 4> kLayouts = {{
      {false, 32, false, 4, 20, 12, 16},
      {false, 36, true, 3, 20, 12, 16},
      {true, 36, true, 3, 20, 12, 16},
      {true, 40, true, 3, 16, 4, 8},
  }};
  return kLayouts[static_cast<std::size_t>(header_.format)];
}

Result<GoLineTable::Header> GoLineTable::read_header(std::string_view bytes) {
  const auto damaged = [](const char* what) { return Error(std::string(".gopclntab: truncated or damaged: ") + what); };
  const auto magic = read<std::uint32_t>(bytes, 0);
  if (!magic || bytes.size() < 8) return damaged("its header is cut off");
  Header header;
  switch (*magic) {
    case 0xfffffffb:
      header.format = Format::kGo12;
      break;
    case 0xfffffffa:
      header.format = Format::kGo116;
      break;
    case 0xfffffff0:
      header.format = Format::kGo118;
      break;
    case 0xfffffff1:
      header.format = Format::kGo120;
      break;
    default:
      return Error(".gopclntab: of a format that is not known here");
  }
  header.quantum = static_cast<std::uint8_t>(bytes[6]);
  header.pointer_bytes = static_cast<std::uint8_t>(bytes[7]);
  if (bytes[4] != 0 || bytes[5] != 0 || (header.quantum != 1 && header.quantum != 2 && header.quantum != 4) ||
      (header.pointer_bytes != 4 && header.pointer_bytes != 8)) {
    return damaged("its header is invalid");
  }

  std::array<std::uint64_t, 8> words{};
  const std::size_t count = header.format == Format::kGo12 ? 1 : header.format == Format::kGo116 ? 7 : 8;
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = read_pointer(bytes, 8 + i * header.pointer_bytes, header.pointer_bytes);
    if (!word) return damaged("its header is cut off");
    words[i] = *word;
  }
  header.functions = words[0];
  if (header.format == Format::kGo12) {
    header.function_table = 8 + header.pointer_bytes;
  } else {
    // { functions, files, [text start], names, units, files, values, functions }
    const std::size_t first = header.format == Format::kGo116 ? 2 : 3;
    if (first == 3) header.text_start = words[2];
    header.names = words[first];
    header.units = words[first + 1];
    header.files = words[first + 2];
    header.values = words[first + 3];
    header.function_table = words[first + 4];
  }
  if (header.functions == 0) return Error(".gopclntab: no functions");
  if (header.functions > kMaxFunctions) {
    return Error(".gopclntab: claims " + std::to_string(header.functions) + " functions, more than the limit of " +
                 std::to_string(kMaxFunctions));
  }
  // Pairs of address and record, then the end of the last function.
  const std::uint64_t field = header.format >= Format::kGo118 ? 4 : header.pointer_bytes;
  const std::uint64_t table_bytes = (2 * header.functions + 1) * field;
  if (header.function_table > bytes.size() || table_bytes > bytes.size() - header.function_table) {
    return damaged("the functions don't fit into it");
  }
  if (header.format == Format::kGo12) {
    const auto files = read<std::uint32_t>(bytes, header.function_table + table_bytes);
    if (!files) return damaged("it ends before the files");
    header.files = *files;
  }
  for (const std::uint64_t offset : {header.names, header.units, header.files, header.values}) {
    if (offset > bytes.size()) return damaged("a table lies outside of it");
  }
  return header;
}

Result<GoLineTable> GoLineTable::parse(const GoParts& parts) {
  const Result<Header> header = read_header(parts.line_table);
  if (!header) return header.error();
  GoLineTable table(parts, *header);
  if (table.layout().relative &&
      parts.text_start > std::numeric_limits<std::uint64_t>::max() - std::numeric_limits<std::uint32_t>::max()) {
    return Error(".gopclntab: damaged: the code begins at the end of the address space");
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.entry(i) > table.entry(i + 1)) return Error(".gopclntab: damaged: the functions don't ascend");
  }
  return table;
}

/// The entry of function `index`, or the end of the last one.
std::uint64_t GoLineTable::entry(std::size_t index) const {
  const std::string_view bytes = parts_.line_table;
  if (layout().relative) {
    return parts_.text_start + read<std::uint32_t>(bytes, header_.function_table + index * 8).value_or(0);
  }
  const std::uint64_t at = header_.function_table + index * 2 * header_.pointer_bytes;
  return read_pointer(bytes, at, header_.pointer_bytes).value_or(0);
}

std::uint64_t GoLineTable::start() const { return entry(0); }
std::uint64_t GoLineTable::end() const { return entry(size()); }

std::optional<GoLineTable::Record> GoLineTable::record(std::size_t index) const {
  const Layout& layout = this->layout();
  const std::uint32_t field = layout.relative ? 4 : header_.pointer_bytes;
  const std::string_view bytes = parts_.line_table;
  const auto offset = read_pointer(bytes, header_.function_table + (2 * index + 1) * field, field);
  // Before Go 1.16 the records' offsets are relative to the header, later to the table of functions.
  const std::uint64_t base = header_.format == Format::kGo12 ? 0 : header_.function_table;
  if (!offset || *offset > bytes.size() || base + *offset > bytes.size()) return std::nullopt;
  const std::uint64_t fields = base + *offset + field;
  if (fields > bytes.size() || layout.record_bytes > bytes.size() - fields) return std::nullopt;
  const auto word = [&](std::uint64_t i) { return read<std::uint32_t>(bytes, fields + 4 * i).value_or(0); };

  Record record{};
  record.entry = entry(index);
  record.end = entry(index + 1);
  record.name = word(0);
  record.stack_table = word(3);
  record.file_table = word(4);
  record.line_table = word(5);
  record.pc_data_count = word(6);
  record.unit = layout.has_unit ? word(7) : 0;
  record.pc_data = fields + layout.record_bytes;
  record.function_data_count = static_cast<std::uint8_t>(bytes[record.pc_data - 1]);
  return record;
}

std::string_view GoLineTable::name_at(std::uint32_t offset) const {
  return string_at(parts_.line_table, header_.names + offset, kMaxNameBytes);
}

GoLineTable::Function GoLineTable::function(std::size_t index) const {
  const std::optional<Record> found = record(index);
  return {entry(index), entry(index + 1), found ? name_at(found->name) : std::string_view()};
}

/// Calls `visit(value, begin, end)` for the values of the table at `table`, each with the distances from a function's
/// start at which it holds, until that returns false. A table is pairs of varints: the difference (zigzag) to the
/// previous value, initially -1, and the number of quanta with that value. What is damaged ends it.
template <typename Visit>
void GoLineTable::for_each_value(std::uint32_t table, Visit&& visit) const {
  if (table == 0) return;
  std::uint64_t at = header_.values + table;
  std::uint64_t pc = 0;
  auto value = static_cast<std::uint32_t>(-1);
  for (std::uint32_t step = 0; step < kMaxSteps; ++step) {
    const auto difference = read_varint(parts_.line_table, at);
    if (!difference || (*difference == 0 && step != 0)) return;  // a difference of 0 ends the table
    const auto quanta = read_varint(parts_.line_table, at);
    if (!quanta || *quanta == 0) return;
    value += (*difference & 1) != 0 ? ~(*difference >> 1) : *difference >> 1;
    const std::uint64_t begin = pc;
    pc += std::uint64_t{*quanta} * header_.quantum;
    if (!visit(static_cast<std::int32_t>(value), begin, pc)) return;
  }
}

std::optional<std::int32_t> GoLineTable::value_at(std::uint32_t table, std::uint64_t distance) const {
  std::optional<std::int32_t> found;
  for_each_value(table, [&](std::int32_t value, std::uint64_t, std::uint64_t end) {
    if (distance < end) found = value;
    return !found;
  });
  return found;
}

std::vector<GoLineTable::StackDepth> GoLineTable::stack_depths(std::size_t index) const {
  std::vector<StackDepth> depths;
  const std::optional<Record> found = record(index);
  if (!found) return depths;
  const std::uint64_t size = found->end - found->entry;
  for_each_value(found->stack_table, [&](std::int32_t value, std::uint64_t begin, std::uint64_t end) {
    if (value < 0) return false;
    depths.push_back({begin, std::min(end, size) - begin, value});
    return end < size;
  });
  return depths;
}

std::string_view GoLineTable::file_at(const Record& record, std::uint64_t distance) const {
  const std::optional<std::int32_t> number = value_at(record.file_table, distance);
  if (!number || *number < 0) return {};
  const std::string_view bytes = parts_.line_table;
  const auto index = static_cast<std::uint64_t>(*number);
  if (header_.format == Format::kGo12) {
    // The table begins with its length; files count from 1.
    const auto offset = index == 0 ? std::nullopt : read<std::uint32_t>(bytes, header_.files + 4 * index);
    return offset ? string_at(bytes, *offset, kMaxFileBytes) : std::string_view();
  }
  const auto offset = read<std::uint32_t>(bytes, header_.units + 4 * (record.unit + index));
  if (!offset || *offset == kNone) return {};
  return string_at(bytes, header_.files + *offset, kMaxFileBytes);
}

std::uint32_t GoLineTable::line_at(const Record& record, std::uint64_t distance) const {
  const std::optional<std::int32_t> line = value_at(record.line_table, distance);
  return line && *line > 0 ? static_cast<std::uint32_t>(*line) : 0;
}

std::optional<std::uint32_t> GoLineTable::pc_data(const Record& record, std::uint32_t index) const {
  if (index >= record.pc_data_count) return std::nullopt;
  return read<std::uint32_t>(parts_.line_table, record.pc_data + std::uint64_t{4} * index);
}

/// The offset of its tree in the function data.
std::optional<std::uint64_t> GoLineTable::inline_tree(const Record& record) const {
  const Layout& layout = this->layout();
  if (layout.tree_index >= record.function_data_count) return std::nullopt;
  std::uint64_t at = record.pc_data + std::uint64_t{4} * record.pc_data_count;
  if (layout.relative) {
    const auto offset = read<std::uint32_t>(parts_.line_table, at + std::uint64_t{4} * layout.tree_index);
    if (!offset || *offset == kNone) return std::nullopt;
    return *offset;
  }
  const std::uint64_t pointer = header_.pointer_bytes;
  at = (at + pointer - 1) / pointer * pointer;
  const auto address = read_pointer(parts_.line_table, at + pointer * layout.tree_index, header_.pointer_bytes);
  if (!address || *address < parts_.function_data_address) return std::nullopt;
  const std::uint64_t offset = *address - parts_.function_data_address;
  return offset < parts_.function_data.size() ? std::optional(offset) : std::nullopt;
}

SourceChain GoLineTable::locate(std::uint64_t address) const {
  if (address < start() || address >= end()) return {};
  // The last function that begins at or before the address.
  std::size_t low = 0;
  std::size_t high = size();
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (entry(middle) <= address ? low : high) = middle;
  }
  const std::optional<Record> found = record(low);
  if (!found) return {};

  // From the inside to the outside: the record of an inlined call has the function's name, and an instruction with the
  // file and line of the call. The caller comes next.
  const Layout& layout = this->layout();
  const std::optional<std::uint64_t> tree = inline_tree(*found);
  const std::optional<std::uint32_t> tree_table = pc_data(*found, kInlineTreeIndex);
  SourceChain chain;
  std::uint64_t distance = address - found->entry;
  std::int32_t last = std::numeric_limits<std::int32_t>::max();
  const auto add = [&](std::string_view name, bool inlined) {
    const std::string_view file = file_at(*found, distance);
    chain.push_back({std::string(name), std::string(file), file.empty() ? 0 : line_at(*found, distance), inlined});
  };
  while (tree && tree_table && chain.size() < kMaxInlineDepth) {
    const std::optional<std::int32_t> index = value_at(*tree_table, distance);
    // Callers come before their callees, which also excludes cycles.
    if (!index || *index < 0 || *index >= last) break;
    last = *index;
    const std::uint64_t call = *tree + static_cast<std::uint64_t>(*index) * layout.call_bytes;
    const auto name_offset = read<std::uint32_t>(parts_.function_data, call + layout.call_name);
    const auto parent = read<std::uint32_t>(parts_.function_data, call + layout.call_parent_pc);
    if (!name_offset || !parent || *parent >= found->end - found->entry) break;
    const std::string_view name = name_at(*name_offset);
    if (name.empty()) break;
    add(name, true);
    distance = *parent;
  }
  add(name_at(found->name), false);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace flamed::symbolizer
