// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/elf_facts_reader.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include "symbolizer/elf/elf_sections.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint64_t kMaxLinkBytes = 8192;
constexpr std::size_t kMaxFileNameBytes = 255;  // NAME_MAX
constexpr std::size_t kMaxPathBytes = 4095;     // PATH_MAX without its NUL
constexpr std::size_t kMaxBuildIdBytes = 64;

bool is_plain(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

/// A name that leads out of the searched directories is not a file name.
bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxFileNameBytes && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && is_plain(name);
}

/// The bytes of a small section; empty if it is missing or damaged.
std::string_view link_bytes(ElfSections& sections, std::string_view name) {
  ElfSections::Section* section = sections.with_bytes(name);
  if (section == nullptr) return {};
  const Result<::Elf_Data*> data = sections.load(*section, kMaxLinkBytes);
  return data ? ElfSections::bytes_of(*data) : std::string_view();
}

/// .gnu_debuglink: file name, NUL, up to three NULs to a multiple of 4, CRC-32 of the file in this byte order
/// (GDB's manual, "Separate Debug Files").
void read_debug_link(std::string_view bytes, ElfFacts& facts) {
  const std::size_t end = bytes.find('\0');
  if (end == std::string_view::npos || !is_file_name(bytes.substr(0, end))) return;
  const std::size_t crc_at = (end + 4) & ~std::size_t{3};
  if (crc_at + sizeof(facts.debug_link_crc) > bytes.size()) return;
  facts.debug_link = std::string(bytes.substr(0, end));
  std::memcpy(&facts.debug_link_crc, bytes.data() + crc_at, sizeof(facts.debug_link_crc));
}

/// .gnu_debugaltlink: path, NUL, build-id to the section's end.
void read_alternate_link(std::string_view bytes, ElfFacts& facts) {
  const std::size_t end = bytes.find('\0');
  if (end == std::string_view::npos || end == 0 || end > kMaxPathBytes || !is_plain(bytes.substr(0, end))) return;
  const std::string_view build_id = bytes.substr(end + 1);
  if (build_id.empty() || build_id.size() > kMaxBuildIdBytes) return;
  facts.alternate_link = std::string(bytes.substr(0, end));
  facts.alternate_build_id = to_hex(build_id);
}

ElfFacts facts_of(ElfSections& sections) {
  ElfFacts facts;
  facts.build_id = sections.build_id();
  read_debug_link(link_bytes(sections, ".gnu_debuglink"), facts);
  read_alternate_link(link_bytes(sections, ".gnu_debugaltlink"), facts);
  const ElfSections::Section* symtab = sections.of_type(SHT_SYMTAB);
  facts.has_symtab = symtab != nullptr && symtab->header.sh_size > symtab->header.sh_entsize;  // symbol 0 is reserved
  // ".zdebug_": the compression before SHF_COMPRESSED.
  facts.has_debug_info =
      sections.with_bytes(".debug_info") != nullptr || sections.with_bytes(".zdebug_info") != nullptr;
  facts.has_mini_debug_info = sections.with_bytes(".gnu_debugdata") != nullptr;
  // In position-independent programs it is the second name, or the third if a linker other than Go's has merged it.
  facts.is_go = sections.with_bytes(".gopclntab") != nullptr ||
                sections.with_bytes(".data.rel.ro.gopclntab") != nullptr ||
                sections.named(".note.go.buildid") != nullptr;
  return facts;
}

}  // namespace

Result<ElfFacts> read_elf_facts(int fd) {
  try {
    Result<ElfSections> sections = ElfSections::open(fd);
    if (!sections) return std::move(sections).error();
    return facts_of(*sections);
  } catch (const std::exception& e) {
    return Error(std::string("cannot read the file's headers: ") + e.what());
  }
}

}  // namespace flamed::symbolizer
