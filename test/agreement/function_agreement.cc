// SPDX-License-Identifier: Apache-2.0
#include "test/agreement/function_agreement.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/reader/described_functions.h"

namespace flamed::agreement {
namespace {

using symbolizer::CodeRange;
using symbolizer::ElfHandle;

/// The longest function by its start.
using Functions = std::map<std::uint64_t, std::uint64_t>;

struct EhFrame {
  ::Elf_Data* data = nullptr;
  std::uint64_t address = 0;
};

std::optional<EhFrame> eh_frame_of(::Elf* elf) {
  std::size_t names = 0;
  if (::elf_getshdrstrndx(elf, &names) != 0) return std::nullopt;
  for (::Elf_Scn* scn = ::elf_nextscn(elf, nullptr); scn != nullptr; scn = ::elf_nextscn(elf, scn)) {
    GElf_Shdr header{};
    if (::gelf_getshdr(scn, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* name = ::elf_strptr(elf, names, header.sh_name);
    if (name == nullptr || std::string_view(name) != ".eh_frame") continue;
    if (::Elf_Data* const data = ::elf_rawdata(scn, nullptr); data != nullptr && data->d_size != 0) {
      return EhFrame{data, header.sh_addr};
    }
  }
  return std::nullopt;
}

bool is_code(::Elf* elf, const CodeRange& function) {
  std::size_t count = 0;
  if (::elf_getphdrnum(elf, &count) != 0) return false;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment{};
    if (::gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) return false;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && function.start >= segment.p_vaddr &&
        function.end <= segment.p_vaddr + segment.p_filesz) {
      return true;
    }
  }
  return false;
}

/// The encoding of addresses in a CIE's FDEs. It follows other letters' data, which have their own sizes.
std::optional<std::uint8_t> encoding_of(const Dwarf_CIE& cie) {
  std::string_view letters = cie.augmentation;
  if (letters.empty()) return DW_EH_PE_absptr;
  if (letters.front() != 'z') return std::nullopt;
  const std::uint8_t* at = cie.augmentation_data;
  for (const char letter : letters.substr(1)) {
    if (letter == 'R') return *at;
    if (letter == 'L') ++at;
    if (letter == 'P') at += (*at & 0x0f) == DW_EH_PE_absptr || (*at & 0x07) == DW_EH_PE_udata8 ? 9 : 5;
  }
  return DW_EH_PE_absptr;
}

/// The function of an FDE; none if its encoding is none that linkers use.
std::optional<CodeRange> function_of(const EhFrame& section, const Dwarf_FDE& fde, std::uint8_t encoding) {
  const auto* const bytes = static_cast<const std::uint8_t*>(section.data->d_buf);
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  switch (encoding & 0x0f) {
    case DW_EH_PE_sdata4: {
      std::int32_t distance = 0;
      std::uint32_t narrow_size = 0;
      std::memcpy(&distance, fde.start, sizeof(distance));
      std::memcpy(&narrow_size, fde.start + sizeof(distance), sizeof(narrow_size));
      start = static_cast<std::uint64_t>(std::int64_t{distance});
      size = narrow_size;
      break;
    }
    case DW_EH_PE_absptr:
    case DW_EH_PE_sdata8:
      std::memcpy(&start, fde.start, sizeof(start));
      std::memcpy(&size, fde.start + sizeof(start), sizeof(size));
      break;
    default:
      return std::nullopt;
  }
  if ((encoding & 0x70) == DW_EH_PE_pcrel) {
    start += section.address + static_cast<std::uint64_t>(fde.start - bytes);
  } else if ((encoding & 0x70) != 0) {
    return std::nullopt;
  }
  return CodeRange{start, start + size};
}

/// None if libdw can't read a record.
std::optional<Functions> functions_of(::Elf* elf, const EhFrame& section) {
  const auto* const ident = reinterpret_cast<const unsigned char*>(::elf_getident(elf, nullptr));
  Functions functions;
  Dwarf_CFI_Entry entry{};
  for (Dwarf_Off at = 0, next = 0;; at = next) {
    const int read = ::dwarf_next_cfi(ident, section.data, true, at, &next, &entry);
    if (read == 1) return functions;
    if (read != 0) return std::nullopt;
    if (dwarf_cfi_cie_p(&entry)) continue;
    const Dwarf_FDE fde = entry.fde;
    Dwarf_Off ignored = 0;
    if (::dwarf_next_cfi(ident, section.data, true, fde.CIE_pointer, &ignored, &entry) != 0) return std::nullopt;
    const std::optional<std::uint8_t> encoding = encoding_of(entry.cie);
    const std::optional<CodeRange> function = encoding ? function_of(section, fde, *encoding) : std::nullopt;
    if (!function) return std::nullopt;
    // Linkers leave records of functions that they have removed.
    if (function->end <= function->start || !is_code(elf, *function)) continue;
    std::uint64_t& end = functions[function->start];
    end = std::max(end, function->end);
  }
}

std::string place(const std::string& path, std::uint64_t start, std::uint64_t end) {
  char text[64];
  std::snprintf(text, sizeof(text), ": %#" PRIx64 " to %#" PRIx64, start, end);
  return path + text;
}

}  // namespace

void compare_functions(const std::string& path, int fd, Tally& tally) {
  const ElfHandle elf(::elf_begin(fd, ELF_C_READ, nullptr));
  const std::optional<EhFrame> section = elf ? eh_frame_of(elf.get()) : std::nullopt;
  if (!section) return;
  std::optional<Functions> theirs = functions_of(elf.get(), *section);
  if (!theirs) return tally.add_unexplained("libdw can't read .eh_frame", path);
  Result<symbolizer::ElfSections> file = symbolizer::ElfSections::open(fd);
  if (!file) return tally.add_unexplained("flamed can't read it", path);
  const symbolizer::FunctionRanges ours = symbolizer::read_described_functions(*file);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const CodeRange function = ours[i];
    const auto same = theirs->find(function.start);
    if (same == theirs->end()) {
      tally.add_unexplained("no function begins here with libdw", place(path, function.start, function.end));
    } else if (same->second != function.end) {
      tally.add_unexplained("it ends elsewhere with libdw", place(path, function.start, function.end));
      theirs->erase(same);
    } else {
      tally.add_equal();
      theirs->erase(same);
    }
  }
  for (const auto& [start, end] : *theirs) {
    tally.add_unexplained("no function begins here with flamed", place(path, start, end));
  }
}

}  // namespace flamed::agreement
