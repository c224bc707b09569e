// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf_symbols.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <string_view>
#include <utility>

#include "base/handle.h"
#include "symbolizer/clean_name.h"
#include "symbolizer/elf_input.h"

namespace flamed::symbolizer {
namespace {

using ElfHandle = Handle<::Elf*, ::elf_end>;

// The largest programs known (browsers with full symbols, Go programs of hundreds of MB) stay below these.
constexpr std::uint64_t kMaxProgramHeaders = 1'000;
constexpr std::uint64_t kMaxSymbols = 4'000'000;
constexpr std::uint64_t kMaxStringBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxRelocationBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxPltBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kMaxPltNameBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxNoteBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMaxBuildIdBytes = 64;
// All sections together: many section headers may point to the same bytes, and libelf keeps a copy for each.
constexpr std::uint64_t kMaxLoadedBytes = std::uint64_t{384} << 20;

std::string in_bytes(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

struct Section {
  ::Elf_Scn* scn = nullptr;
  GElf_Shdr header{};
  std::string_view name;
  bool loaded = false;
};

/// A string table that is loaded: NUL-terminated strings by offset.
class Strings {
 public:
  Strings() = default;
  explicit Strings(std::string_view bytes) : bytes_(bytes) {}
  /// Empty when `offset` lies outside or the table ends before the string does. Looks no further than a name may
  /// reach: millions of symbols may point into one endless string.
  [[nodiscard]] std::string_view at(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const std::string_view rest = bytes_.substr(offset, kMaxNameBytes + 1);
    const std::size_t end = rest.find('\0');
    if (end != std::string_view::npos) return rest.substr(0, end);
    return rest.size() > kMaxNameBytes ? rest.substr(0, kMaxNameBytes) : std::string_view();
  }

 private:
  std::string_view bytes_;
};

std::string_view bytes_of(const ::Elf_Data* data) {
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

}  // namespace

/// One reading of one file; its methods run in the order in which read() calls them.
class ElfReader {
 public:
  ElfReader(ElfHandle elf, std::uint64_t file_bytes) : elf_(std::move(elf)), file_bytes_(file_bytes) {}

  Result<ElfSymbols> read() {
    if (::elf_kind(elf_.get()) != ELF_K_ELF) return Error("not an ELF file");
    if (::gelf_getehdr(elf_.get(), &header_) == nullptr) return libelf_error("cannot read the ELF header");
    if (header_.e_type != ET_EXEC && header_.e_type != ET_DYN) {
      return Error("neither a program nor a shared library (ELF type " + std::to_string(header_.e_type) + ")");
    }
    if (Status status = read_segments(); !status) return std::move(status).error();
    if (Status status = read_sections(); !status) return std::move(status).error();

    SymbolTable::Builder builder;
    Section* symtab = section_of_type(SHT_SYMTAB);
    Section* dynsym = section_of_type(SHT_DYNSYM);
    if (symtab != nullptr) {
      if (Status status = add_symbols(*symtab, builder); !status)
        return std::move(status).error().with_context(".symtab");
      if (builder.count() != 0) symbols_.source_ = ElfSymbols::Source::kSymtab;
    }
    if (builder.count() == 0 && dynsym != nullptr) {
      if (Status status = add_symbols(*dynsym, builder); !status)
        return std::move(status).error().with_context(".dynsym");
      if (builder.count() != 0) symbols_.source_ = ElfSymbols::Source::kDynsym;
    }
    add_plt_stubs(builder);

    Result<SymbolTable> table = std::move(builder).build();
    if (!table) return std::move(table).error();
    symbols_.table_ = std::move(table).value();
    return std::move(symbols_);
  }

 private:
  struct AddressRange {
    std::uint64_t start;
    std::uint64_t end;
  };

  Status read_segments() {
    std::size_t count = 0;
    if (::elf_getphdrnum(elf_.get(), &count) != 0) return libelf_error("cannot count the program headers");
    count = std::min<std::size_t>(count, kMaxProgramHeaders);
    std::vector<ElfSymbols::Segment> not_executable;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr phdr{};
      if (::gelf_getphdr(elf_.get(), static_cast<int>(i), &phdr) == nullptr) {
        return libelf_error("cannot read a program header");
      }
      if (phdr.p_type == PT_LOAD) {
        const ElfSymbols::Segment segment{phdr.p_offset, phdr.p_filesz, phdr.p_vaddr};
        ((phdr.p_flags & PF_X) != 0 ? symbols_.segments_ : not_executable).push_back(segment);
      } else if (phdr.p_type == PT_NOTE && symbols_.build_id_.empty()) {
        read_build_id(phdr);
      }
    }
    // Code runs from executable segments; the others only matter to a file that marks none.
    if (symbols_.segments_.empty()) symbols_.segments_ = std::move(not_executable);
    return {};
  }

  void read_build_id(const GElf_Phdr& phdr) {
    if (phdr.p_filesz > kMaxNoteBytes || !in_file(phdr.p_offset, phdr.p_filesz)) return;
    ::Elf_Data* data = ::elf_getdata_rawchunk(elf_.get(), static_cast<int64_t>(phdr.p_offset), phdr.p_filesz,
                                              phdr.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
    const std::string_view bytes = bytes_of(data);
    if (bytes.empty()) return;
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
      for (const char c : bytes.substr(value_at, note.n_descsz)) {
        constexpr std::string_view kHex = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(c);
        symbols_.build_id_ += kHex[byte >> 4];
        symbols_.build_id_ += kHex[byte & 15];
      }
      return;
    }
  }

  Status read_sections() {
    std::size_t names_index = 0;
    const bool has_names = ::elf_getshdrstrndx(elf_.get(), &names_index) == 0;
    for (::Elf_Scn* scn = ::elf_nextscn(elf_.get(), nullptr); scn != nullptr; scn = ::elf_nextscn(elf_.get(), scn)) {
      Section section;
      section.scn = scn;
      if (::gelf_getshdr(scn, &section.header) == nullptr) return libelf_error("cannot read a section header");
      sections_.push_back(section);
      const GElf_Shdr& h = section.header;
      constexpr GElf_Xword kCode = SHF_ALLOC | SHF_EXECINSTR;
      if ((h.sh_flags & kCode) == kCode && h.sh_size != 0 &&
          h.sh_size <= std::numeric_limits<std::uint64_t>::max() - h.sh_addr) {
        code_.push_back({h.sh_addr, h.sh_addr + h.sh_size});
      }
    }
    std::sort(code_.begin(), code_.end(), [](AddressRange a, AddressRange b) { return a.start < b.start; });

    if (!has_names) return {};
    // Names of sections are only needed to find the PLT: without them, its stubs go unnamed.
    if (Section* names = section_at(names_index); names != nullptr) {
      if (const Result<Strings> strings = load_strings(*names); strings.ok()) {
        for (Section& section : sections_) section.name = strings->at(section.header.sh_name);
      }
    }
    return {};
  }

  [[nodiscard]] bool in_file(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= file_bytes_ && bytes <= file_bytes_ - offset;
  }

  [[nodiscard]] Section* section_at(std::size_t index) {
    // Section 0 is not iterated: section i stands at i - 1.
    return index >= 1 && index <= sections_.size() ? &sections_[index - 1] : nullptr;
  }

  [[nodiscard]] Section* section_of_type(GElf_Word type) {
    const auto found = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const Section& section) { return section.header.sh_type == type; });
    return found == sections_.end() ? nullptr : &*found;
  }

  /// The section's bytes. They live as long as elf_.
  Result<::Elf_Data*> load(Section& section, std::uint64_t limit_bytes) {
    const GElf_Shdr& h = section.header;
    if (h.sh_type == SHT_NOBITS) return Error("the section has no bytes in this file");
    if ((h.sh_flags & SHF_COMPRESSED) != 0) return Error("the section is compressed");
    if (!in_file(h.sh_offset, h.sh_size)) {
      return Error("truncated or damaged: a section of " + in_bytes(h.sh_size) + " at " + std::to_string(h.sh_offset) +
                   " lies outside the file of " + in_bytes(file_bytes_));
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

  Result<Strings> load_strings(Section& section) {
    if (section.header.sh_type != SHT_STRTAB) return Error("damaged: its names point to a section without strings");
    Result<::Elf_Data*> data = load(section, kMaxStringBytes);
    if (!data) return std::move(data).error();
    return Strings(bytes_of(*data));
  }

  /// The code section that holds `address`. Where it ends is where a function in it ends at the latest.
  [[nodiscard]] const AddressRange* code_at(std::uint64_t address) const {
    const auto after = std::upper_bound(code_.begin(), code_.end(), address,
                                        [](std::uint64_t wanted, AddressRange range) { return wanted < range.start; });
    if (after == code_.begin()) return nullptr;
    const AddressRange& range = *std::prev(after);
    return address < range.end ? &range : nullptr;
  }

  Status add_symbols(Section& section, SymbolTable::Builder& builder) {
    const std::size_t entry_bytes = ::gelf_fsize(elf_.get(), ELF_T_SYM, 1, EV_CURRENT);
    if (entry_bytes == 0) return libelf_error("cannot tell the size of a symbol");
    Result<::Elf_Data*> data = load(section, kMaxSymbols * entry_bytes);
    if (!data) return std::move(data).error();
    Section* names = section_at(section.header.sh_link);
    if (names == nullptr) return Error("damaged: no section holds its names");
    const Result<Strings> strings = load_strings(*names);
    if (!strings) return strings.error();

    const std::size_t count = bytes_of(*data).size() / entry_bytes;
    for (std::size_t i = 1; i < count; ++i) {  // symbol 0 is reserved
      GElf_Sym symbol{};
      if (::gelf_getsym(*data, static_cast<int>(i), &symbol) == nullptr) break;
      const int type = GELF_ST_TYPE(symbol.st_info);
      if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) continue;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS || symbol.st_shndx == SHN_COMMON) continue;
      // The section is looked up by address, not by st_shndx: a label may only name what is executable.
      const AddressRange* code = code_at(symbol.st_value);
      if (code == nullptr) continue;
      std::string_view name = strings->at(symbol.st_name);
      if (is_marker(type, name)) continue;
      name = name.substr(0, name.find('@'));  // "memcpy@@GLIBC_2.14": some linkers put the version into the name
      const int bind = GELF_ST_BIND(symbol.st_info);
      const SymbolBinding binding = bind == STB_LOCAL  ? SymbolBinding::kLocal
                                    : bind == STB_WEAK ? SymbolBinding::kWeak
                                                       : SymbolBinding::kGlobal;
      builder.add(symbol.st_value, symbol.st_size, code->end, binding, name);
    }
    return {};
  }

  /// Labels that no person wrote: the assembler's local labels, and ARM's and RISC-V's marks for code and data ("$x").
  static bool is_marker(int type, std::string_view name) {
    if (name.empty()) return true;
    return type == STT_NOTYPE && (name.front() == '$' || name.substr(0, 2) == ".L");
  }

  struct Slot {
    std::uint64_t address;
    std::uint32_t symbol;
  };

  /// A stub jumps through a slot of the global offset table, and the relocation of that slot names the function. So
  /// each stub is decoded: this works for every layout that ld, gold, lld and mold write, where counting entries
  /// doesn't. Whatever can't be understood here stays unnamed; it is no reason to lose the file's functions.
  void add_plt_stubs(SymbolTable::Builder& builder) {
    if (header_.e_machine != EM_X86_64 || header_.e_ident[EI_CLASS] != ELFCLASS64) return;
    const auto is_plt = [](const Section& section) {
      return section.header.sh_type == SHT_PROGBITS && section.name.substr(0, 4) == ".plt";
    };
    if (std::none_of(sections_.begin(), sections_.end(), is_plt)) return;

    Section* dynsym = section_of_type(SHT_DYNSYM);
    if (dynsym == nullptr) return;
    Section* names = section_at(dynsym->header.sh_link);
    if (names == nullptr) return;
    const Result<::Elf_Data*> symbols = load(*dynsym, kMaxSymbols * sizeof(Elf64_Sym));
    const Result<Strings> strings = load_strings(*names);
    if (!symbols || !strings) return;

    const std::vector<Slot> slots = read_slots();
    std::uint64_t name_bytes = 0;
    for (Section& section : sections_) {
      if (!is_plt(section)) continue;
      const Result<::Elf_Data*> data = load(section, kMaxPltBytes);
      if (!data) continue;
      const std::string_view code = bytes_of(*data);
      // .plt.got of 8-byte stubs is the one layout that isn't 16; some linkers leave sh_entsize at 0.
      const std::uint64_t stub_bytes = section.header.sh_entsize == 8 ? 8 : 16;
      const std::uint64_t base = section.header.sh_addr;
      if (code.size() > std::numeric_limits<std::uint64_t>::max() - base) continue;
      for (std::uint64_t at = 0; at + stub_bytes <= code.size(); at += stub_bytes) {
        const std::optional<std::uint64_t> slot = jump_slot(code.substr(at, stub_bytes), base + at);
        if (!slot) continue;
        const auto found = std::lower_bound(slots.begin(), slots.end(), *slot,
                                            [](const Slot& s, std::uint64_t wanted) { return s.address < wanted; });
        if (found == slots.end() || found->address != *slot) continue;
        GElf_Sym symbol{};
        if (::gelf_getsym(*symbols, static_cast<int>(found->symbol), &symbol) == nullptr) continue;
        std::string_view name = strings->at(symbol.st_name);
        name = name.substr(0, name.find('@'));
        if (name.empty()) continue;
        name_bytes += name.size() + 4;
        if (name_bytes > kMaxPltNameBytes) return;
        stub_names_.push_back(std::string(name) + "@plt");
        builder.add(base + at, stub_bytes, base + code.size(), SymbolBinding::kLocal, stub_names_.back());
      }
    }
  }

  /// The slots that the dynamic linker fills with the address of a named function.
  std::vector<Slot> read_slots() {
    std::vector<Slot> slots;
    for (Section& section : sections_) {
      if (section.header.sh_type != SHT_RELA) continue;
      const Result<::Elf_Data*> data = load(section, kMaxRelocationBytes);
      if (!data) continue;
      const std::size_t count = bytes_of(*data).size() / sizeof(Elf64_Rela);
      for (std::size_t i = 0; i < count; ++i) {
        GElf_Rela rela{};
        if (::gelf_getrela(*data, static_cast<int>(i), &rela) == nullptr) break;
        const auto type = GELF_R_TYPE(rela.r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
        const auto symbol = static_cast<std::uint32_t>(GELF_R_SYM(rela.r_info));
        if (symbol == 0 || symbol > kMaxSymbols) continue;
        slots.push_back({rela.r_offset, symbol});
      }
    }
    std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.address < b.address; });
    return slots;
  }

  /// The slot that `stub` at `address` jumps through: "jmp *disp32(%rip)" is ff 25 disp32, where disp32 counts from the
  /// end of the instruction. Before it may stand endbr64 (f3 0f 1e fa) and the bnd prefix (f2).
  static std::optional<std::uint64_t> jump_slot(std::string_view stub, std::uint64_t address) {
    const auto starts_with = [&](std::size_t at, std::string_view bytes) {
      return stub.substr(at, bytes.size()) == bytes;
    };
    std::size_t at = 0;
    if (starts_with(at, "\xf3\x0f\x1e\xfa")) at += 4;
    if (starts_with(at, "\xf2")) at += 1;
    if (!starts_with(at, "\xff\x25") || stub.size() < at + 6) return std::nullopt;
    std::int32_t displacement = 0;
    std::memcpy(&displacement, stub.data() + at + 2, sizeof(displacement));
    return address + at + 6 + static_cast<std::uint64_t>(static_cast<std::int64_t>(displacement));
  }

  const ElfHandle elf_;
  const std::uint64_t file_bytes_;
  GElf_Ehdr header_{};
  std::vector<Section> sections_;
  std::uint64_t loaded_bytes_ = 0;
  std::vector<AddressRange> code_;
  std::deque<std::string> stub_names_;  ///< the builder refers to them
  ElfSymbols symbols_;
};

namespace {

Result<ElfSymbols> read_checked(const ElfInput& input, ElfHandle elf) {
  if (!elf) return libelf_error("cannot read the file");
  return ElfReader(std::move(elf), input.size()).read();
}

/// Runs `body`, which may run out of memory on a large file.
template <typename Body>
Result<ElfSymbols> at_border(Body body) {
  if (::elf_version(EV_CURRENT) == EV_NONE) return libelf_error("libelf is older than its header");
  try {
    return body();
  } catch (const std::exception& e) {
    return Error(std::string("cannot read the symbols: ") + e.what());
  }
}

}  // namespace

std::optional<std::uint64_t> ElfSymbols::address_of(std::uint64_t file_offset) const {
  for (const Segment& segment : segments_) {
    if (file_offset >= segment.offset && file_offset - segment.offset < segment.size) {
      return segment.address + (file_offset - segment.offset);
    }
  }
  return std::nullopt;
}

std::optional<SymbolTable::Found> ElfSymbols::find(std::uint64_t file_offset) const {
  const std::optional<std::uint64_t> address = address_of(file_offset);
  return address ? table_.find(*address) : std::nullopt;
}

std::size_t ElfSymbols::bytes() const {
  return sizeof(*this) + table_.bytes() + segments_.capacity() * sizeof(Segment) + build_id_.capacity();
}

Result<ElfSymbols> read_elf_symbols(int fd) {
  return at_border([&]() -> Result<ElfSymbols> {
    const Result<ElfInput> input = ElfInput::from_fd(fd);
    if (!input) return input.error();
    if (Status status = check_elf_header(*input); !status) return std::move(status).error();
    return read_checked(*input, ElfHandle(::elf_begin(fd, ELF_C_READ, nullptr)));
  });
}

Result<ElfSymbols> read_elf_symbols(std::span<const std::byte> image) {
  return at_border([&]() -> Result<ElfSymbols> {
    const ElfInput input = ElfInput::from_memory(image);
    if (Status status = check_elf_header(input); !status) return std::move(status).error();
    // libelf wants memory that it may write, and aligned as malloc aligns.
    std::vector<char> copy(image.size());
    std::memcpy(copy.data(), image.data(), image.size());
    return read_checked(input, ElfHandle(::elf_memory(copy.data(), copy.size())));
  });
}

}  // namespace flamed::symbolizer
