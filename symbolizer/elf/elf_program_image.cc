// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/elf_program_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace flamed::symbolizer {
namespace {

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{64} << 20;
/// A libpython has 30,000. Of more, the rest stays as in the file.
constexpr std::size_t kMostWritten = 1'000'000;

}  // namespace

bool ElfProgramImage::is_x86_64() const {
  return file_.header().e_machine == EM_X86_64 && file_.header().e_ident[EI_CLASS] == ELFCLASS64;
}

ElfProgramImage::Table ElfProgramImage::table_of(GElf_Word type) {
  ElfSections::Section* const section = file_.of_type(type);
  if (section == nullptr || section->header.sh_entsize == 0) return {};
  ElfSections::Section* const names = file_.at(section->header.sh_link);
  if (names == nullptr || section->header.sh_size > kMaxTableBytes) return {};
  const Result<::Elf_Data*> data = file_.load(*section, kMaxTableBytes);
  const Result<ElfStrings> strings = file_.load_strings(*names);
  if (!data || !strings) return {};
  return {*data, *strings, static_cast<std::size_t>(section->header.sh_size / section->header.sh_entsize)};
}

const ElfProgramImage::Table& ElfProgramImage::symbols() {
  if (!symbols_) symbols_ = table_of(SHT_DYNSYM);
  return *symbols_;
}

std::optional<ElfProgramImage::Symbol> ElfProgramImage::symbol(std::string_view name) {
  const Table& table = symbols();
  for (std::size_t i = 1; table.data != nullptr && i < table.entries; ++i) {
    GElf_Sym symbol{};
    if (::gelf_getsym(table.data, static_cast<int>(i), &symbol) == nullptr) break;
    if (symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) == STT_TLS) continue;
    if (table.strings.at(symbol.st_name) == name) return Symbol{symbol.st_value, symbol.st_size};
  }
  return std::nullopt;
}

bool ElfProgramImage::needs(std::string_view library) {
  const Table table = table_of(SHT_DYNAMIC);
  for (std::size_t i = 0; table.data != nullptr && i < table.entries; ++i) {
    GElf_Dyn entry{};
    if (::gelf_getdyn(table.data, static_cast<int>(i), &entry) == nullptr || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED && table.strings.at(entry.d_un.d_val) == library) return true;
  }
  return false;
}

void ElfProgramImage::add_written(const GElf_Rela& rela) {
  const Table& table = symbols();
  const auto symbol_value = [&]() -> std::optional<std::uint64_t> {
    GElf_Sym symbol{};
    const auto index = static_cast<int>(GELF_R_SYM(rela.r_info));
    if (table.data == nullptr || ::gelf_getsym(table.data, index, &symbol) == nullptr) return std::nullopt;
    if (symbol.st_shndx == SHN_UNDEF) return std::nullopt;
    return symbol.st_value;
  };
  Written word{rela.r_offset, static_cast<std::uint64_t>(rela.r_addend), false};
  switch (GELF_R_TYPE(rela.r_info)) {
    case R_X86_64_RELATIVE:
      break;
    case R_X86_64_DTPMOD64:
      // Of this library, not of the one that defines another's variable.
      if (GELF_R_SYM(rela.r_info) != 0 && !symbol_value()) return;
      word.is_block_number = true;
      break;
    case R_X86_64_64:
    case R_X86_64_GLOB_DAT:
    case R_X86_64_DTPOFF64:
      if (const std::optional<std::uint64_t> value = symbol_value()) {
        word.value += *value;
        break;
      }
      return;
    default:
      return;
  }
  written_->push_back(word);
}

const std::vector<ElfProgramImage::Written>& ElfProgramImage::written() {
  if (written_) return *written_;
  written_.emplace();
  for (ElfSections::Section& section : file_.all()) {
    if (section.header.sh_type != SHT_RELA || (section.header.sh_flags & SHF_ALLOC) == 0 || !is_x86_64()) continue;
    const Result<::Elf_Data*> data = file_.load(section, kMaxTableBytes);
    if (!data) continue;
    GElf_Rela rela{};
    for (int i = 0; written_->size() < kMostWritten && ::gelf_getrela(*data, i, &rela) != nullptr; ++i) {
      add_written(rela);
    }
  }
  std::sort(written_->begin(), written_->end(),
            [](const Written& a, const Written& b) { return a.address < b.address; });
  return *written_;
}

bool ElfProgramImage::read_file(std::uint64_t address, std::span<std::byte> to) const {
  for (const GElf_Phdr& segment : file_.segments()) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const std::uint64_t skip = address - segment.p_vaddr;
    if (skip > segment.p_memsz || to.size() > segment.p_memsz - skip) continue;
    std::memset(to.data(), 0, to.size());
    if (skip >= segment.p_filesz) return true;
    const std::size_t in_file = std::min<std::uint64_t>(to.size(), segment.p_filesz - skip);
    if (segment.p_offset > UINT64_MAX - skip) return false;
    return file_.input().read(segment.p_offset + skip, to.data(), in_file);
  }
  return false;
}

bool ElfProgramImage::read(std::uint64_t address, std::span<std::byte> to) {
  constexpr std::uint64_t kWordBytes = 8;
  if (address > UINT64_MAX - to.size() - kWordBytes || !read_file(address, to)) return false;
  const std::vector<Written>& words = written();
  const std::uint64_t from = address < kWordBytes ? 0 : address - kWordBytes + 1;
  auto word = std::lower_bound(words.begin(), words.end(), from,
                               [](const Written& w, std::uint64_t at) { return w.address < at; });
  for (; word != words.end() && word->address < address + to.size(); ++word) {
    for (std::uint64_t byte = 0; byte < kWordBytes; ++byte) {
      const std::uint64_t at = word->address + byte;
      if (at >= address && at - address < to.size()) {
        to[static_cast<std::size_t>(at - address)] = static_cast<std::byte>(word->value >> (8 * byte));
      }
    }
  }
  return true;
}

bool ElfProgramImage::is_block_number(std::uint64_t address) {
  const std::vector<Written>& words = written();
  const auto word = std::lower_bound(words.begin(), words.end(), address,
                                     [](const Written& w, std::uint64_t at) { return w.address < at; });
  return word != words.end() && word->address == address && word->is_block_number;
}

}  // namespace flamed::symbolizer
