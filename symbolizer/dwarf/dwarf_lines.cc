// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/dwarf_lines.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/byte_reader.h"

namespace flamed::symbolizer {
namespace {

// A program is of one unit; all programs of a browser have 200 MB together.
constexpr std::uint64_t kMaxProgramBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMaxEntries = 1'000'000;

std::string join(const std::string& directory, const std::string& name) {
  if (directory.empty() || name.substr(0, 1) == "/") return name;
  if (name.empty()) return directory;
  return directory + (directory.back() == '/' ? "" : "/") + name;
}

/// Matches the rows of a line program, in its order, with the queries.
class Rows {
 public:
  explicit Rows(std::span<DwarfLineQuery> queries) : queries_(queries) {}

  void add(std::uint64_t address, std::uint64_t file, std::uint32_t line) {
    if (!in_sequence_) {
      in_sequence_ = true;
      // The linker has dropped the function.
      is_dropped_ = address == 0 || address >= UINT64_MAX - 1;
      seek(address);
    } else {
      close(address);
    }
    address_ = address;
    file_ = file;
    line_ = line;
  }

  void end_sequence(std::uint64_t address) {
    if (in_sequence_) close(address);
    in_sequence_ = false;
  }

 private:
  void seek(std::uint64_t address) {
    next_ = static_cast<std::size_t>(
        std::lower_bound(queries_.begin(), queries_.end(), address,
                         [](const DwarfLineQuery& query, std::uint64_t wanted) { return query.address < wanted; }) -
        queries_.begin());
  }

  // The previous row is valid up to `end`.
  void close(std::uint64_t end) {
    if (end < address_) return seek(end);
    for (; next_ < queries_.size() && queries_[next_].address < end; ++next_) {
      DwarfLineQuery& query = queries_[next_];
      if (is_dropped_ || query.found || query.address < address_) continue;
      query.found = true;
      query.file = file_;
      query.line = line_;
    }
  }

  std::span<DwarfLineQuery> queries_;
  std::size_t next_ = 0;  ///< first one not before the row
  bool in_sequence_ = false;
  bool is_dropped_ = false;
  std::uint64_t address_ = 0;
  std::uint64_t file_ = 0;
  std::uint32_t line_ = 0;
};

}  // namespace

std::optional<DwarfLines> DwarfLines::open(DwarfInfo& info, const DwarfUnit& unit) {
  if (!unit.line_program) return std::nullopt;
  DwarfLines lines(info, unit);
  if (!lines.read_header(*unit.line_program)) return std::nullopt;
  return lines;
}

/*
 * The header (DWARF 5, 6.2.4): length as that of a unit, u16 version, 5: u8 address size, u8 segment selector size;
 * length of the rest of the header; u8 minimum instruction length, from 4: u8 operations per instruction, u8 default
 * is_stmt, i8 line base, u8 line range, u8 opcode base, u8 operand count for each opcode below it, names.
 */
bool DwarfLines::read_header(std::uint64_t offset) {
  ByteReader length_cursor(info_->sections().view(DwarfSection::kLine, offset, 16));
  shape_.offset_bytes = 4;
  std::uint64_t length = length_cursor.u32();
  if (length == 0xFFFFFFFF) {
    shape_.offset_bytes = 8;
    length = length_cursor.u64();
  }
  if (!length_cursor.ok() || length > kMaxProgramBytes) return false;
  bytes_ = info_->sections().keep(DwarfSection::kLine, offset + length_cursor.position(),
                                  static_cast<std::size_t>(length), storage_);
  ByteReader cursor(bytes_);
  const std::uint16_t version = cursor.u16();
  if (version < 2 || version > 5) return false;
  shape_.version = static_cast<std::uint8_t>(version);
  shape_.address_bytes = unit_->shape.address_bytes;
  if (version == 5) cursor.skip(2);
  const std::uint64_t header = cursor.number(shape_.offset_bytes);
  if (!cursor.ok() || header > cursor.left()) return false;
  start_ = cursor.position() + static_cast<std::size_t>(header);
  instruction_bytes_ = cursor.u8();
  if (version >= 4) cursor.skip(1);
  cursor.skip(1);
  line_base_ = static_cast<std::int8_t>(cursor.u8());
  line_range_ = cursor.u8();
  opcode_base_ = cursor.u8();
  if (opcode_base_ == 0) return false;
  operand_counts_ = cursor.take(opcode_base_ - 1U);
  return cursor.ok() && info_->budget().spend(1) && read_names(cursor);
}

bool DwarfLines::read_names(ByteReader& cursor) {
  if (shape_.version == 5) return read_entries(cursor, directories_) && read_entries(cursor, files_);
  const auto text = [&] {
    DwarfValue value;
    value.form = DW_FORM_string;
    value.text = cursor.text();
    return value;
  };
  // Directory 0 is the compiler's working directory; there is no file 0.
  directories_.emplace_back();
  while (true) {
    Entry entry;
    entry.name = text();
    if (!cursor.ok()) return false;
    if (entry.name.text.empty()) break;
    if (directories_.size() >= kMaxEntries) return false;
    directories_.push_back(std::move(entry));
  }
  files_.emplace_back();
  while (true) {
    Entry entry;
    entry.name = text();
    if (!cursor.ok()) return false;
    if (entry.name.text.empty()) break;
    entry.directory = cursor.uleb();
    cursor.skip_leb();  // time of change
    cursor.skip_leb();  // size
    if (files_.size() >= kMaxEntries) return false;
    files_.push_back(std::move(entry));
  }
  return info_->budget().spend(directories_.size() + files_.size());
}

/*
 * u8 count of pairs (ULEB content type, ULEB form), ULEB count of entries, entries.
 */
bool DwarfLines::read_entries(ByteReader& cursor, std::vector<Entry>& to) {
  std::array<std::pair<std::uint64_t, DwarfAttribute>, 255> format{};
  const std::size_t fields = cursor.u8();
  bool has_size = false;
  for (std::size_t i = 0; i < fields; ++i) {
    format[i].first = cursor.uleb();
    const std::uint64_t form = cursor.uleb();
    if (form > 0xFFFF || form == DW_FORM_implicit_const) return false;
    format[i].second.form = static_cast<std::uint16_t>(form);
    has_size = has_size || form != DW_FORM_flag_present;
  }
  const std::uint64_t count = cursor.uleb();
  // Without a byte per entry, a few bytes could claim any count.
  if (!cursor.ok() || (count != 0 && !has_size) || count > cursor.left() || count > kMaxEntries) return false;
  if (!info_->budget().spend(count * fields)) return false;
  to.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    Entry entry;
    for (std::size_t field = 0; field < fields; ++field) {
      const DwarfValue value = read_dwarf_value(cursor, format[field].second, shape_);
      if (format[field].first == DW_LNCT_path) entry.name = value;
      if (format[field].first == DW_LNCT_directory_index) entry.directory = value.number;
    }
    if (!cursor.ok()) return false;
    to.push_back(std::move(entry));
  }
  return true;
}

const std::string& DwarfLines::path(std::uint64_t file) {
  static const std::string kNone;
  if (file >= files_.size()) return kNone;
  Entry& entry = files_[static_cast<std::size_t>(file)];
  if (!entry.path) entry.path = find_path(entry);
  return *entry.path;
}

std::string DwarfLines::find_path(const Entry& entry) {
  std::string name = info_->text(*unit_, entry.name);
  if (name.empty() || name.front() == '/') return name;
  std::string directory;
  if (entry.directory < directories_.size()) {
    directory = info_->text(*unit_, directories_[static_cast<std::size_t>(entry.directory)].name);
  }
  // From version 5 on, directory 0 is in the table.
  const bool is_whole =
      !directory.empty() && (directory.front() == '/' || (shape_.version == 5 && entry.directory == 0));
  if (!is_whole) {
    if (!std::exchange(knows_compiled_in_, true)) compiled_in_ = info_->directory(*unit_);
    directory = join(compiled_in_, directory);
  }
  return join(directory, name);
}

// The machine that the instructions drive is in DWARF 5, 6.2.2; columns, blocks and discriminators are ignored.
void DwarfLines::find(std::span<DwarfLineQuery> queries) {
  Rows rows(queries);
  ByteReader cursor(bytes_, start_);
  std::uint64_t address = 0;
  std::uint64_t file = 1;
  std::uint64_t line = 1;
  const auto add = [&] { rows.add(address, file, static_cast<std::uint32_t>(line)); };
  while (cursor.ok() && cursor.left() != 0) {
    if (!info_->budget().spend(1)) return;
    const std::uint8_t opcode = cursor.u8();
    if (opcode >= opcode_base_) {
      const unsigned adjusted = opcode - unsigned{opcode_base_};
      if (line_range_ == 0) return;
      address += std::uint64_t{adjusted / line_range_} * instruction_bytes_;
      line += static_cast<std::uint64_t>(std::int64_t{line_base_} + std::int64_t{adjusted % line_range_});
      add();
      continue;
    }
    switch (opcode) {
      case 0: {  // extended: ULEB length, u8 opcode, operands
        const std::uint64_t length = cursor.uleb();
        if (length == 0) break;
        if (length > cursor.left()) return;
        const std::size_t end = cursor.position() + static_cast<std::size_t>(length);
        switch (cursor.u8()) {
          case DW_LNE_end_sequence:
            rows.end_sequence(address);
            address = 0;
            file = line = 1;
            break;
          case DW_LNE_set_address:
            if (length == 5 || length == 9) address = cursor.number(static_cast<std::size_t>(length - 1));
            break;
          default:
            break;
        }
        cursor.seek(end);
        break;
      }
      case DW_LNS_copy:
        add();
        break;
      case DW_LNS_advance_pc:
        address += cursor.uleb() * instruction_bytes_;
        break;
      case DW_LNS_advance_line:
        line += static_cast<std::uint64_t>(cursor.sleb());
        break;
      case DW_LNS_set_file:
        file = cursor.uleb();
        break;
      case DW_LNS_const_add_pc:
        if (line_range_ == 0) return;
        address += std::uint64_t{(255U - opcode_base_) / line_range_} * instruction_bytes_;
        break;
      case DW_LNS_fixed_advance_pc:
        address += cursor.u16();
        break;
      default:
        for (unsigned left = std::to_integer<unsigned>(operand_counts_[opcode - 1U]); left != 0; --left) {
          cursor.skip_leb();
        }
        break;
    }
  }
}

}  // namespace flamed::symbolizer
