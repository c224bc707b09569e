// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/dwarf_sections.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace flamed::symbolizer {
namespace {

// The needed sections of a browser's 400 MB of compressed debug information.
constexpr std::uint64_t kMaxInflatedBytes = std::uint64_t{768} << 20;
// Deflate reaches at most 1032:1; 16 KiB are allowed in addition.
constexpr std::uint64_t kMaxInflation = 1032;

// Without ".debug_" or ".zdebug_", in the order of DwarfSection.
constexpr std::array<std::string_view, kDwarfSections> kNames = {"info",        "abbrev", "line",   "line_str", "str",
                                                                 "str_offsets", "addr",   "ranges", "rnglists"};
// How much is read at once: much for sections that are read sequentially, little for others.
constexpr std::array<std::size_t, kDwarfSections> kWindowBytes = {4096, 16384, 4096,  1024, 1024,
                                                                  4096, 65536, 65536, 65536};

}  // namespace

Result<DwarfSections> DwarfSections::open(int fd) {
  Result<ElfSections> elf = ElfSections::open(fd);
  if (!elf) return std::move(elf).error();
  DwarfSections sections(std::make_unique<ElfSections>(std::move(*elf)));
  if (Status status = sections.find(); !status) return std::move(status).error();
  return sections;
}

Status DwarfSections::find() {
  for (const GElf_Phdr& phdr : elf_->segments()) {
    if (phdr.p_type == PT_LOAD && (phdr.p_flags & PF_X) != 0) {
      code_.push_back({phdr.p_offset, phdr.p_filesz, phdr.p_vaddr});
    }
  }
  const std::uint64_t file_size = elf_->input().size();
  for (const ElfSections::Section& each : elf_->all()) {
    const GElf_Shdr& header = each.header;
    if (header.sh_type == SHT_NULL || header.sh_type == SHT_NOBITS || header.sh_size == 0) continue;
    std::string_view name = each.name;
    const bool is_gnu_compressed = name.substr(0, 8) == ".zdebug_";
    if (!is_gnu_compressed && name.substr(0, 7) != ".debug_") continue;
    name.remove_prefix(is_gnu_compressed ? 8 : 7);
    const auto* found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end()) continue;
    Section& section = sections_[static_cast<std::size_t>(found - kNames.begin())];
    if (section.size != 0) continue;
    if (header.sh_offset > file_size || header.sh_size > file_size - header.sh_offset) {
      return Error("truncated: " + std::string(each.name) + " lies outside the file");
    }
    section.offset = header.sh_offset;
    section.size = header.sh_size;
    section.scn = each.scn;
    section.is_gnu_compressed = is_gnu_compressed;
    section.is_compressed = is_gnu_compressed || (header.sh_flags & SHF_COMPRESSED) != 0;
  }
  return {};
}

void DwarfSections::inflate(Section& section) {
  section.is_compressed = false;
  const std::uint64_t deflated = std::exchange(section.size, 0);
  ::Elf_Scn* scn = section.scn;
  std::uint64_t size = 0;
  if (section.is_gnu_compressed) {
    if (deflated < 12 || !elf_->input().read(section.offset + 4, &size, sizeof(size))) return;
    size = __builtin_bswap64(size);
  } else {
    GElf_Chdr chdr{};
    if (::gelf_getchdr(scn, &chdr) == nullptr) return;
    size = chdr.ch_size;
  }
  if (size > kMaxInflatedBytes - inflated_bytes_ || size / kMaxInflation > deflated) return;
  if ((section.is_gnu_compressed ? ::elf_compress_gnu(scn, 0, 0) : ::elf_compress(scn, 0, 0)) < 0) return;
  const ::Elf_Data* data = ::elf_rawdata(scn, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return;
  inflated_bytes_ += data->d_size;
  section.inflated = static_cast<const std::byte*>(data->d_buf);
  section.size = data->d_size;
}

std::uint64_t DwarfSections::size(DwarfSection which) {
  Section& section = sections_[static_cast<std::size_t>(which)];
  if (section.is_compressed) inflate(section);
  return section.size;
}

std::span<const std::byte> DwarfSections::view(DwarfSection which, std::uint64_t offset, std::size_t wanted) {
  const std::uint64_t size = this->size(which);
  if (offset >= size) return {};
  Section& section = sections_[static_cast<std::size_t>(which)];
  if (section.inflated != nullptr) return {section.inflated + offset, static_cast<std::size_t>(size - offset)};
  if (wanted > size - offset) wanted = static_cast<std::size_t>(size - offset);
  if (offset < section.window_offset || offset - section.window_offset > section.window_size ||
      section.window_size - (offset - section.window_offset) < wanted) {
    wanted = std::max(wanted, kWindowBytes[static_cast<std::size_t>(which)]);
    if (wanted > size - offset) wanted = static_cast<std::size_t>(size - offset);
    section.window_size = 0;
    if (section.window_capacity < wanted) {
      section.window.reset();
      section.window_capacity = 0;
      section.window = std::make_unique_for_overwrite<std::byte[]>(wanted);
      section.window_capacity = wanted;
    }
    if (!elf_->input().read(section.offset + offset, section.window.get(), wanted)) return {};
    section.window_offset = offset;
    section.window_size = wanted;
  }
  const auto into = static_cast<std::size_t>(offset - section.window_offset);
  return {section.window.get() + into, section.window_size - into};
}

std::span<const std::byte> DwarfSections::keep(DwarfSection which, std::uint64_t offset, std::size_t wanted,
                                               std::vector<std::byte>& storage) {
  const std::uint64_t size = this->size(which);
  if (offset > size || wanted > size - offset) return {};
  const Section& section = sections_[static_cast<std::size_t>(which)];
  if (section.inflated != nullptr) return {section.inflated + offset, wanted};
  storage.resize(wanted);
  if (!elf_->input().read(section.offset + offset, storage.data(), wanted)) return {};
  return storage;
}

}  // namespace flamed::symbolizer
