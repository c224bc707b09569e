// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/elf_sections.h"

#include <elf.h>
#include <libelf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint64_t kMaxStringBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxNoteBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMaxBuildIdBytes = 64;
// All sections together: many section headers may point to the same bytes, and libelf keeps a copy for each.
constexpr std::uint64_t kMaxLoadedBytes = std::uint64_t{384} << 20;

std::string in_bytes(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

std::string build_id_in(::Elf_Data* data) {
  const std::string_view bytes = ElfSections::bytes_of(data);
  if (bytes.empty()) return {};
  GElf_Nhdr note{};
  std::size_t name_at = 0;
  std::size_t value_at = 0;
  for (std::size_t at = 0; (at = ::gelf_getnote(data, at, &note, &name_at, &value_at)) != 0;) {
    if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU)) continue;
    if (bytes.substr(name_at, sizeof(ELF_NOTE_GNU)) != std::string_view(ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU))) continue;
    if (note.n_descsz == 0 || note.n_descsz > kMaxBuildIdBytes || value_at > bytes.size() ||
        note.n_descsz > bytes.size() - value_at) {
      continue;
    }
    return to_hex(bytes.substr(value_at, note.n_descsz));
  }
  return {};
}

}  // namespace

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kHex[byte >> 4];
    hex += kHex[byte & 15];
  }
  return hex;
}

std::string_view ElfStrings::at(std::uint64_t offset) const {
  if (offset >= bytes_.size()) return {};
  const std::string_view rest = bytes_.substr(offset, kMaxNameBytes + 1);
  const std::size_t end = rest.find('\0');
  if (end != std::string_view::npos) return rest.substr(0, end);
  return rest.size() > kMaxNameBytes ? rest.substr(0, kMaxNameBytes) : std::string_view();
}

Result<ElfSections> ElfSections::open(int fd) {
  if (::elf_version(EV_CURRENT) == EV_NONE) return libelf_error("libelf is older than its header");
  const Result<ElfInput> input = ElfInput::from_fd(fd);
  if (!input) return input.error();
  if (Status status = check_elf_header(*input); !status) return std::move(status).error();
  return read(*input, {}, ElfHandle(::elf_begin(fd, ELF_C_READ, nullptr)));
}

Result<ElfSections> ElfSections::open(std::span<const std::byte> image) {
  if (::elf_version(EV_CURRENT) == EV_NONE) return libelf_error("libelf is older than its header");
  const ElfInput input = ElfInput::from_memory(image);
  if (Status status = check_elf_header(input); !status) return std::move(status).error();
  std::vector<char> copy(image.size());
  std::memcpy(copy.data(), image.data(), image.size());
  ElfHandle elf(::elf_memory(copy.data(), copy.size()));
  return read(input, std::move(copy), std::move(elf));
}

Result<ElfSections> ElfSections::read(ElfInput input, std::vector<char> image, ElfHandle elf) {
  if (!elf) return libelf_error("cannot read the file");
  ElfSections sections(input, std::move(image), std::move(elf));
  if (Status status = sections.read_headers(); !status) return std::move(status).error();
  return sections;
}

Status ElfSections::read_headers() {
  if (::elf_kind(elf_.get()) != ELF_K_ELF) return Error("not an ELF file");
  if (::gelf_getehdr(elf_.get(), &header_) == nullptr) return libelf_error("cannot read the ELF header");

  std::size_t count = 0;
  if (::elf_getphdrnum(elf_.get(), &count) != 0) return libelf_error("cannot count the program headers");
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr phdr{};
    if (::gelf_getphdr(elf_.get(), static_cast<int>(i), &phdr) == nullptr) {
      return libelf_error("cannot read a program header");
    }
    segments_.push_back(phdr);
  }

  std::size_t names_index = 0;
  const bool has_names = ::elf_getshdrstrndx(elf_.get(), &names_index) == 0;
  for (::Elf_Scn* scn = ::elf_nextscn(elf_.get(), nullptr); scn != nullptr; scn = ::elf_nextscn(elf_.get(), scn)) {
    Section section;
    section.scn = scn;
    if (::gelf_getshdr(scn, &section.header) == nullptr) return libelf_error("cannot read a section header");
    sections_.push_back(section);
  }
  // If the names of sections are damaged, sections can still be found by type.
  if (Section* names = has_names ? at(names_index) : nullptr; names != nullptr) {
    if (const Result<ElfStrings> strings = load_strings(*names); strings.ok()) {
      for (Section& section : sections_) section.name = strings->at(section.header.sh_name);
    }
  }
  return {};
}

Status ElfSections::check_loadable() const {
  if (header_.e_type == ET_EXEC || header_.e_type == ET_DYN) return {};
  return Error("neither a program nor a shared library (ELF type " + std::to_string(header_.e_type) + ")");
}

bool ElfSections::in_file(std::uint64_t offset, std::uint64_t bytes) const {
  return offset <= input_.size() && bytes <= input_.size() - offset;
}

ElfSections::Section* ElfSections::at(std::size_t index) {
  // Section 0 is not iterated: section i is at i - 1.
  return index >= 1 && index <= sections_.size() ? &sections_[index - 1] : nullptr;
}

ElfSections::Section* ElfSections::of_type(GElf_Word type) {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const Section& section) { return section.header.sh_type == type; });
  return found == sections_.end() ? nullptr : &*found;
}

ElfSections::Section* ElfSections::named(std::string_view name) {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const Section& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

ElfSections::Section* ElfSections::with_bytes(std::string_view name) {
  Section* section = named(name);
  return section != nullptr && section->header.sh_type != SHT_NOBITS && section->header.sh_size != 0 ? section
                                                                                                     : nullptr;
}

Result<::Elf_Data*> ElfSections::load(Section& section, std::uint64_t limit_bytes) {
  const GElf_Shdr& h = section.header;
  if (h.sh_type == SHT_NOBITS) return Error("the section has no bytes in this file");
  if ((h.sh_flags & SHF_COMPRESSED) != 0) return Error("the section is compressed");
  if (!in_file(h.sh_offset, h.sh_size)) {
    return Error("truncated or damaged: a section of " + in_bytes(h.sh_size) + " at " + std::to_string(h.sh_offset) +
                 " lies outside the file of " + in_bytes(input_.size()));
  }
  if (h.sh_size > limit_bytes) {
    return Error("a section of " + in_bytes(h.sh_size) + " is larger than the limit of " + in_bytes(limit_bytes));
  }
  if (!section.loaded) {
    if (h.sh_size > kMaxLoadedBytes - loaded_bytes_) {
      return Error("its tables add up to more than the limit of " + in_bytes(kMaxLoadedBytes));
    }
    loaded_bytes_ += h.sh_size;
    section.loaded = true;
  }
  ::Elf_Data* data = ::elf_getdata(section.scn, nullptr);
  if (data == nullptr) return libelf_error("cannot read a section");
  return data;
}

Result<ElfStrings> ElfSections::load_strings(Section& section) {
  if (section.header.sh_type != SHT_STRTAB) return Error("damaged: its names point to a section without strings");
  Result<::Elf_Data*> data = load(section, kMaxStringBytes);
  if (!data) return std::move(data).error();
  return ElfStrings(bytes_of(*data));
}

std::string_view ElfSections::bytes_of(const ::Elf_Data* data) {
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

std::string ElfSections::build_id() {
  // Program headers of a separate debug file may be those of its program, and point to other bytes here.
  for (Section& section : sections_) {
    if (section.header.sh_type != SHT_NOTE) continue;
    const Result<::Elf_Data*> data = load(section, kMaxNoteBytes);
    if (!data) continue;
    if (std::string found = build_id_in(*data); !found.empty()) return found;
  }
  for (const GElf_Phdr& phdr : segments_) {
    if (phdr.p_type != PT_NOTE || phdr.p_filesz > kMaxNoteBytes || !in_file(phdr.p_offset, phdr.p_filesz)) continue;
    ::Elf_Data* data = ::elf_getdata_rawchunk(elf_.get(), static_cast<int64_t>(phdr.p_offset), phdr.p_filesz,
                                              phdr.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
    if (std::string found = build_id_in(data); !found.empty()) return found;
  }
  return {};
}

}  // namespace flamed::symbolizer
