// SPDX-License-Identifier: Apache-2.0
//
// The layout of moduledata is that of Go's runtime/symtab.go, 1.18 to 1.27.
#include "symbolizer/go/go_module.h"

#include <elf.h>
#include <gelf.h>

#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace flamed::symbolizer {
namespace {

using Section = ElfSections::Section;

// A Go program of 500 MB has some 100 MB of each.
constexpr std::uint64_t kMaxLineTableBytes = std::uint64_t{192} << 20;
constexpr std::uint64_t kMaxFunctionDataBytes = std::uint64_t{128} << 20;
constexpr std::uint64_t kMaxDataBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxRelocationBytes = std::uint64_t{96} << 20;

/// The section loaded at `address`, with bytes in the file. Null: none.
Section* section_of(ElfSections& file, std::uint64_t address) {
  for (Section& section : file.all()) {
    const GElf_Shdr& h = section.header;
    if ((h.sh_flags & SHF_ALLOC) == 0 || h.sh_type == SHT_NOBITS) continue;
    if (address >= h.sh_addr && address - h.sh_addr < h.sh_size) return &section;
  }
  return nullptr;
}

/// Applies the addresses that the dynamic linker will write into a section of a position-independent program. Some
/// linkers leave them out of the section itself.
void relocate(ElfSections& file, const Section& target, std::string& bytes) {
  const GElf_Ehdr& header = file.header();
  if (header.e_type != ET_DYN || header.e_ident[EI_CLASS] != ELFCLASS64) return;
  const std::uint64_t relative = header.e_machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
  if (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64) return;
  for (Section& section : file.all()) {
    if (section.header.sh_type != SHT_RELA || (section.header.sh_flags & SHF_ALLOC) == 0) continue;
    const Result<::Elf_Data*> data = file.load(section, kMaxRelocationBytes);
    if (!data) continue;
    const std::string_view table = ElfSections::bytes_of(*data);
    for (std::size_t at = 0; at + sizeof(Elf64_Rela) <= table.size(); at += sizeof(Elf64_Rela)) {
      Elf64_Rela rela{};
      std::memcpy(&rela, table.data() + at, sizeof(rela));
      if (ELF64_R_TYPE(rela.r_info) != relative || rela.r_offset < target.header.sh_addr) continue;
      const std::uint64_t offset = rela.r_offset - target.header.sh_addr;
      if (offset > bytes.size() || sizeof(rela.r_addend) > bytes.size() - offset) continue;
      std::memcpy(bytes.data() + offset, &rela.r_addend, sizeof(rela.r_addend));
    }
  }
}

/// A section as the running program sees it, from the byte `skip` on.
Result<std::string> load(ElfSections& file, Section& section, std::uint64_t limit_bytes, std::uint64_t skip = 0) {
  const GElf_Shdr& h = section.header;
  if (h.sh_type == SHT_NOBITS || (h.sh_flags & SHF_COMPRESSED) != 0 || skip > h.sh_size) {
    return Error(std::string(section.name) + ": damaged: no bytes");
  }
  const std::uint64_t size = h.sh_size - skip;
  if (size > limit_bytes) {
    return Error(std::string(section.name) + ": " + std::to_string(size) + " bytes, more than the limit of " +
                 std::to_string(limit_bytes));
  }
  const std::uint64_t file_bytes = file.input().size();
  if (h.sh_offset > file_bytes || h.sh_size > file_bytes - h.sh_offset) {
    return Error(std::string(section.name) + ": truncated or damaged: it lies outside the file");
  }
  std::string bytes(size, '\0');
  if (!file.input().read(h.sh_offset + skip, bytes.data(), bytes.size())) {
    return Error(std::string(section.name) + ": cannot be read");
  }
  if (skip == 0) relocate(file, section, bytes);
  return bytes;
}

struct LineTable {
  std::string_view bytes{};  ///< empty: none
  std::uint64_t address = 0;
  FileRange range{};
};

/// The start of a line table in `bytes`. Its header: magic number (32 bits), two zeros, quantum, size of a pointer.
std::optional<std::uint64_t> search_line_table(std::string_view bytes) {
  for (std::uint64_t at = 0; at + 8 <= bytes.size(); at += 8) {
    if (bytes[at + 1] != '\xff' || bytes[at + 2] != '\xff' || bytes[at + 3] != '\xff') continue;
    if (GoLineTable::read_header(bytes.substr(at)).ok()) return at;
  }
  return std::nullopt;
}

/// `storage` holds the bytes.
Result<LineTable> find_line_table(ElfSections& file, std::string& storage) {
  // In position-independent programs it has the second name; a linker other than Go's merges it into the third.
  Section* section = file.with_bytes(".gopclntab");
  if (section == nullptr) section = file.with_bytes(".data.rel.ro.gopclntab");
  const bool is_alone = section != nullptr;
  if (!is_alone && (file.named(".note.go.buildid") != nullptr || file.named(".go.buildinfo") != nullptr)) {
    section = file.with_bytes(".data.rel.ro");
  }
  if (section == nullptr) return LineTable{};
  Result<std::string> loaded = load(file, *section, kMaxLineTableBytes);
  if (!loaded) return std::move(loaded).error();
  storage = std::move(loaded).value();
  const std::optional<std::uint64_t> at = is_alone ? 0 : search_line_table(storage);
  if (!at) return LineTable{};
  return LineTable{std::string_view(storage).substr(*at),
                   section->header.sh_addr + *at,
                   {section->header.sh_offset, section->header.sh_size}};
}

struct ModuleData {
  std::uint64_t text = 0;
  std::uint64_t function_data = 0;
  FileRange range{};
};

/// Finds the runtime's description of the program, which has no symbol in a stripped one: { pcHeader, funcnametab,
/// cutab, filetab, pctab, pclntable, ftab (three words each: address, length, capacity), findfunctab, minpc, maxpc,
/// text, etext, ..., gofunc }. It must match the line table in all of these.
class ModuleDataSearch {
 public:
  ModuleDataSearch(ElfSections& file, std::uint64_t line_table, const GoLineTable::Header& header)
      : file_(file), line_table_(line_table), header_(header), word_bytes_(header.pointer_bytes) {}

  std::optional<ModuleData> run() {
    for (Section& section : file_.all()) {
      constexpr GElf_Xword kData = SHF_ALLOC | SHF_WRITE;
      if (section.header.sh_type != SHT_PROGBITS || (section.header.sh_flags & kData) != kData) continue;
      const Result<std::string> bytes = load(file_, section, kMaxDataBytes);
      if (!bytes) continue;
      bytes_ = *bytes;
      for (std::uint64_t at = 0; at + (kFunctionData120 + 1) * word_bytes_ <= bytes_.size(); at += word_bytes_) {
        if (word(at, 0) != line_table_) continue;
        if (std::optional<ModuleData> found = read(at)) {
          found->range = {section.header.sh_offset + at, (kText + 1) * word_bytes_};
          return found;
        }
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t kSlices = 1;
  static constexpr std::uint64_t kFunctions = 17;
  static constexpr std::uint64_t kMinPc = 20;
  static constexpr std::uint64_t kText = 22;
  static constexpr std::uint64_t kFunctionData118 = 38;
  static constexpr std::uint64_t kTypes = 37;            // and their end, from 1.20 on
  static constexpr std::uint64_t kFunctionData120 = 40;  // two words for coverage counters came before it
  static constexpr std::uint64_t kFunctionData127 = 43;  // and three of types and tables of interfaces

  [[nodiscard]] std::uint64_t word(std::uint64_t at, std::uint64_t index) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at + index * word_bytes_, word_bytes_);
    return value;
  }

  [[nodiscard]] std::optional<ModuleData> read(std::uint64_t at) const {
    const std::uint64_t tables[] = {header_.names,  header_.units,          header_.files,
                                    header_.values, header_.function_table, header_.function_table};
    for (std::uint64_t i = 0; i < std::size(tables); ++i) {
      const std::uint64_t slice = kSlices + 3 * i;
      if (word(at, slice) != line_table_ + tables[i] || word(at, slice + 1) > word(at, slice + 2)) return std::nullopt;
    }
    // The table of functions has one more entry: the end of the last one.
    if (word(at, kFunctions) != header_.functions + 1) return std::nullopt;
    ModuleData data;
    data.text = word(at, kText);
    const std::uint64_t min_pc = word(at, kMinPc);
    const std::uint64_t max_pc = word(at, kMinPc + 1);
    if (data.text > min_pc || min_pc >= max_pc || max_pc > word(at, kText + 1)) return std::nullopt;
    const std::uint64_t function_data = header_.format == GoLineTable::Format::kGo118 ? kFunctionData118
                                        : is_of_127(at)                               ? kFunctionData127
                                                                                      : kFunctionData120;
    data.function_data = word(at, function_data);
    return data;
  }

  /// Go 1.27 has the line table of 1.20. 1.27 added the size of the types' descriptions between the two ends of the
  /// types: { types, typedesclen, etypes } for { types, etypes, rodata }.
  [[nodiscard]] bool is_of_127(std::uint64_t at) const {
    if (at + (kFunctionData127 + 1) * word_bytes_ > bytes_.size()) return false;
    const std::uint64_t begin = word(at, kTypes);
    const std::uint64_t end = word(at, kTypes + 2);
    return begin <= end && word(at, kTypes + 1) <= end - begin;
  }

  ElfSections& file_;
  const std::uint64_t line_table_;
  const GoLineTable::Header header_;
  const std::uint64_t word_bytes_;
  std::string_view bytes_;
};

}  // namespace

Result<std::optional<GoModule>> GoModule::read(ElfSections& file, With with) {
  using Format = GoLineTable::Format;
  auto bytes = std::make_unique<Bytes>();
  const Result<LineTable> found = find_line_table(file, bytes->line_table);
  if (!found) return found.error();
  if (found->bytes.empty()) return std::optional<GoModule>();
  const Result<GoLineTable::Header> header = GoLineTable::read_header(found->bytes);
  if (!header) return header.error();

  GoParts parts;
  parts.line_table = found->bytes;
  parts.text_start = header->text_start;
  std::vector<FileRange> ranges{found->range};
  Section* function_data = nullptr;
  if (header->format >= Format::kGo118) {
    if (const auto data = ModuleDataSearch(file, found->address, *header).run()) {
      parts.text_start = data->text;
      ranges.push_back(data->range);
      parts.function_data_address = data->function_data;
      function_data = section_of(file, data->function_data);
    }
  } else if (file.named(".go.buildinfo") != nullptr) {
    // Before Go 1.13, which added this section, inlined calls had another layout, and nothing else distinguishes the
    // two. The trees are with all constant data.
    function_data = file.with_bytes(".rodata");
    if (function_data != nullptr) parts.function_data_address = function_data->header.sh_addr;
  }
  if (with == With::kInlines && function_data != nullptr) {
    const std::uint64_t skip = parts.function_data_address - function_data->header.sh_addr;
    if (Result<std::string> loaded = load(file, *function_data, kMaxFunctionDataBytes, skip)) {
      bytes->function_data = std::move(loaded).value();
      parts.function_data = bytes->function_data;
    }
  }
  const Result<GoLineTable> table = GoLineTable::parse(parts);
  if (!table) return table.error();
  return std::optional(GoModule(std::move(bytes), *table, std::move(ranges)));
}

}  // namespace flamed::symbolizer
