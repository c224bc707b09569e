// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/elf_symbol_reader.h"

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

#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/elf/xz.h"
#include "symbolizer/go/go_module.h"
#include "symbolizer/reader/described_functions.h"

namespace flamed::symbolizer {
namespace {

// The largest known programs (browsers with full symbols, Go programs of hundreds of MB) are below these.
constexpr std::uint64_t kMaxSymbols = 4'000'000;
constexpr std::uint64_t kMaxRelocationBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxPltBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kMaxPltNameBytes = std::uint64_t{16} << 20;
// A large browser's has 8 MB, packed 2 MB: only names of functions.
constexpr std::uint64_t kMaxMiniBytes = std::uint64_t{32} << 20;
constexpr std::size_t kMaxUnpackedBytes = std::size_t{96} << 20;

using Section = ElfSections::Section;
using Strings = ElfStrings;

std::string_view bytes_of(const ::Elf_Data* data) { return ElfSections::bytes_of(data); }

}  // namespace

/// One reading of one module.
class ElfReader {
 public:
  /// `debug` is null without a separate debug file.
  ElfReader(ElfSections& module, ElfSections* debug) : module_(module), debug_(debug) {}

  Result<ElfSymbols> read() {
    if (Status status = module_.check_loadable(); !status) return std::move(status).error();
    read_segments();
    parts_.build_id = module_.build_id();
    code_ = code_of(module_);
    functions_ = read_described_functions(module_);

    SymbolTable::Builder builder;
    add_go_functions(builder);
    if (Status status = add_functions(builder); !status) return std::move(status).error();
    add_plt_stubs(builder);

    Result<SymbolTable> table = std::move(builder).build();
    if (!table) return std::move(table).error();
    parts_.table = std::move(table).value();
    keep_unnamed_functions();
    return ElfSymbols(std::move(parts_));
  }

 private:
  struct AddressRange {
    std::uint64_t start;
    std::uint64_t end;
  };

  using Source = ElfSymbols::Source;

  void read_segments() {
    std::vector<ElfSymbols::Segment> not_executable;
    for (const GElf_Phdr& phdr : module_.segments()) {
      if (phdr.p_type != PT_LOAD) continue;
      const ElfSymbols::Segment segment{phdr.p_offset, phdr.p_filesz, phdr.p_vaddr};
      ((phdr.p_flags & PF_X) != 0 ? parts_.segments : not_executable).push_back(segment);
    }
    // Code runs from executable segments; the others are used only if none is marked.
    if (parts_.segments.empty()) parts_.segments = std::move(not_executable);
  }

  /// By address. A separate debug file has the same as its module.
  static std::vector<AddressRange> code_of(ElfSections& sections) {
    std::vector<AddressRange> code;
    for (const Section& section : sections.all()) {
      const GElf_Shdr& h = section.header;
      constexpr GElf_Xword kCode = SHF_ALLOC | SHF_EXECINSTR;
      if ((h.sh_flags & kCode) == kCode && h.sh_size != 0 &&
          h.sh_size <= std::numeric_limits<std::uint64_t>::max() - h.sh_addr) {
        code.push_back({h.sh_addr, h.sh_addr + h.sh_size});
      }
    }
    std::sort(code.begin(), code.end(), [](AddressRange a, AddressRange b) { return a.start < b.start; });
    return code;
  }

  Status add_functions(SymbolTable::Builder& builder) {
    if (Section* symtab = module_.of_type(SHT_SYMTAB); symtab != nullptr) {
      if (Status status = add_symbols(module_, *symtab, builder); !status) {
        return std::move(status).error().with_context(".symtab");
      }
      if (found_some(builder, Source::kSymtab)) return {};
    }
    if (debug_ != nullptr) {
      if (code_.empty()) code_ = code_of(*debug_);
      add_or_nothing(*debug_, builder);
      if (found_some(builder, Source::kDebugFile)) return {};
    }
    const bool has_mini = add_mini_debug_info(builder);
    if (Section* dynsym = module_.of_type(SHT_DYNSYM); dynsym != nullptr) {
      if (Status status = add_symbols(module_, *dynsym, builder); !status) {
        return std::move(status).error().with_context(".dynsym");
      }
    }
    found_some(builder, has_mini ? Source::kMiniDebugInfo : Source::kDynsym);
    return {};
  }

  /// Go's own names are the exact ones ("slices.Sort[...]"), and strip keeps them. C code in a Go program is only in
  /// the other tables.
  void add_go_functions(SymbolTable::Builder& builder) {
    Result<std::optional<GoModule>> go = GoModule::read(module_, GoModule::With::kNames);
    if (!go || !go->has_value()) return;
    go_ = std::move(*go);
    const GoLineTable& table = go_->table();
    for (std::size_t i = 0; i < table.size(); ++i) {
      const GoLineTable::Function function = table.function(i);
      builder.add(function.entry, function.end - function.entry, function.end, SymbolBinding::kGlobal, function.name);
    }
    go_count_ = builder.count();
    if (go_count_ == 0) return;
    parts_.go_code = {table.start(), table.end()};
    parts_.source = Source::kGo;
  }

  bool found_some(const SymbolTable::Builder& builder, Source source) {
    if (builder.count() == go_count_) return false;
    parts_.source = source;
    return true;
  }

  /// Adds a .symtab that may be missing or damaged.
  void add_or_nothing(ElfSections& sections, SymbolTable::Builder& builder) {
    Section* symtab = sections.of_type(SHT_SYMTAB);
    if (symtab == nullptr || symtab->header.sh_type == SHT_NOBITS) return;
    static_cast<void>(add_symbols(sections, *symtab, builder));
  }

  /// .gnu_debugdata is an ELF file packed by xz: the .symtab without the symbols of .dynsym (GDB's manual, "Debugging
  /// information in a special section").
  bool add_mini_debug_info(SymbolTable::Builder& builder) {
    Section* section = module_.with_bytes(".gnu_debugdata");
    if (section == nullptr) return false;
    const Result<::Elf_Data*> packed = module_.load(*section, kMaxMiniBytes);
    if (!packed) return false;
    Result<std::string> unpacked = unpack_xz(bytes_of(*packed), kMaxUnpackedBytes);
    if (!unpacked) return false;
    mini_image_ = std::move(unpacked).value();
    Result<ElfSections> mini = ElfSections::open(std::as_bytes(std::span(mini_image_)));
    if (!mini) return false;
    mini_.emplace(std::move(mini).value());
    if (code_.empty()) code_ = code_of(*mini_);
    add_or_nothing(*mini_, builder);
    return builder.count() != go_count_;
  }

  /// The code section with `address`. Its end is the latest end of a function in it.
  [[nodiscard]] const AddressRange* code_at(std::uint64_t address) const {
    const auto after = std::upper_bound(code_.begin(), code_.end(), address,
                                        [](std::uint64_t wanted, AddressRange range) { return wanted < range.start; });
    if (after == code_.begin()) return nullptr;
    const AddressRange& range = *std::prev(after);
    return address < range.end ? &range : nullptr;
  }

  Status add_symbols(ElfSections& sections, Section& section, SymbolTable::Builder& builder) {
    const std::size_t entry_bytes = ::gelf_fsize(sections.elf(), ELF_T_SYM, 1, EV_CURRENT);
    if (entry_bytes == 0) return libelf_error("cannot tell the size of a symbol");
    Result<::Elf_Data*> data = sections.load(section, kMaxSymbols * entry_bytes);
    if (!data) return std::move(data).error();
    Section* names = sections.at(section.header.sh_link);
    if (names == nullptr) return Error("damaged: no section holds its names");
    const Result<Strings> strings = sections.load_strings(*names);
    if (!strings) return strings.error();

    const std::size_t count = bytes_of(*data).size() / entry_bytes;
    for (std::size_t i = 1; i < count; ++i) {  // symbol 0 is reserved
      GElf_Sym symbol{};
      if (::gelf_getsym(*data, static_cast<int>(i), &symbol) == nullptr) break;
      const int type = GELF_ST_TYPE(symbol.st_info);
      if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) continue;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS || symbol.st_shndx == SHN_COMMON) continue;
      // The section is looked up by address, not by st_shndx: only labels in executable sections count.
      const AddressRange* code = code_at(symbol.st_value);
      if (code == nullptr || parts_.go_code.holds(symbol.st_value)) continue;
      std::string_view name = strings->at(symbol.st_name);
      if (is_marker(type, name)) continue;
      name = name.substr(0, name.find('@'));  // "memcpy@@GLIBC_2.14": some linkers append the version to the name
      const int bind = GELF_ST_BIND(symbol.st_info);
      const SymbolBinding binding = bind == STB_LOCAL  ? SymbolBinding::kLocal
                                    : bind == STB_WEAK ? SymbolBinding::kWeak
                                                       : SymbolBinding::kGlobal;
      // A label's code may reach to the next label, but not into functions that have none.
      const std::uint64_t limit =
          symbol.st_size != 0 ? code->end : std::min(code->end, functions_.end_of(symbol.st_value));
      builder.add(symbol.st_value, symbol.st_size, limit, binding, name);
    }
    return {};
  }

  void keep_unnamed_functions() {
    std::vector<CodeRange> unnamed;
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      const CodeRange function = functions_[i];
      const auto first = parts_.table.find(function.start);
      const auto last = parts_.table.find(function.end - 1);
      const bool is_named = first && last && first->name.data() == last->name.data();
      if (!is_named) unnamed.push_back(function);
    }
    parts_.unnamed = FunctionRanges(std::move(unnamed));
  }

  /// Generated labels: the assembler's local labels, and ARM's and RISC-V's mapping symbols ("$x").
  static bool is_marker(int type, std::string_view name) {
    if (name.empty()) return true;
    return type == STT_NOTYPE && (name.front() == '$' || name.substr(0, 2) == ".L");
  }

  struct Slot {
    std::uint64_t address;
    std::uint32_t symbol;
  };

  /// A stub jumps through a slot of the global offset table, and the relocation of that slot has the function's name.
  /// So each stub is decoded: unlike counting entries, this works for all layouts of ld, gold, lld and mold. Unknown
  /// stubs get no name, which does not affect the file's functions.
  void add_plt_stubs(SymbolTable::Builder& builder) {
    const bool is_arm64 = module_.header().e_machine == EM_AARCH64;
    if ((module_.header().e_machine != EM_X86_64 && !is_arm64) || module_.header().e_ident[EI_CLASS] != ELFCLASS64)
      return;
    const auto is_plt = [](const Section& section) {
      return section.header.sh_type == SHT_PROGBITS && section.name.substr(0, 4) == ".plt";
    };
    if (std::none_of(module_.all().begin(), module_.all().end(), is_plt)) return;

    Section* dynsym = module_.of_type(SHT_DYNSYM);
    if (dynsym == nullptr) return;
    Section* names = module_.at(dynsym->header.sh_link);
    if (names == nullptr) return;
    const Result<::Elf_Data*> symbols = module_.load(*dynsym, kMaxSymbols * sizeof(Elf64_Sym));
    const Result<Strings> strings = module_.load_strings(*names);
    if (!symbols || !strings) return;

    const std::vector<Slot> slots = is_arm64 ? read_slots(R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT)
                                             : read_slots(R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT);
    std::uint64_t name_bytes = 0;
    for (Section& section : module_.all()) {
      if (!is_plt(section)) continue;
      const Result<::Elf_Data*> data = module_.load(section, kMaxPltBytes);
      if (!data) continue;
      const std::string_view code = bytes_of(*data);
      // .plt.got with 8-byte stubs is the only layout that isn't 16; some linkers leave sh_entsize at 0.
      const std::uint64_t usual_bytes = section.header.sh_entsize == 8 ? 8 : 16;
      const std::uint64_t base = section.header.sh_addr;
      if (code.size() > std::numeric_limits<std::uint64_t>::max() - base) continue;
      std::uint64_t stub_bytes = usual_bytes;
      for (std::uint64_t at = 0; at + stub_bytes <= code.size(); at += stub_bytes) {
        if (is_arm64) stub_bytes = arm64_stub_bytes(code.substr(at));
        const std::string_view stub = code.substr(at, stub_bytes);
        const std::optional<std::uint64_t> slot =
            is_arm64 ? arm64_jump_slot(stub, base + at) : jump_slot(stub, base + at);
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

  /// Slots that the dynamic linker fills with the address of a named function.
  std::vector<Slot> read_slots(std::uint32_t lazy, std::uint32_t at_once) {
    std::vector<Slot> slots;
    for (Section& section : module_.all()) {
      if (section.header.sh_type != SHT_RELA) continue;
      const Result<::Elf_Data*> data = module_.load(section, kMaxRelocationBytes);
      if (!data) continue;
      const std::size_t count = bytes_of(*data).size() / sizeof(Elf64_Rela);
      for (std::size_t i = 0; i < count; ++i) {
        GElf_Rela rela{};
        if (::gelf_getrela(*data, static_cast<int>(i), &rela) == nullptr) break;
        const auto type = GELF_R_TYPE(rela.r_info);
        if (type != lazy && type != at_once) continue;
        const auto symbol = static_cast<std::uint32_t>(GELF_R_SYM(rela.r_info));
        if (symbol == 0 || symbol > kMaxSymbols) continue;
        slots.push_back({rela.r_offset, symbol});
      }
    }
    std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.address < b.address; });
    return slots;
  }

  /// The slot that `stub` at `address` jumps through: "jmp *disp32(%rip)" is ff 25 disp32, where disp32 is relative to
  /// the end of the instruction. endbr64 (f3 0f 1e fa) and the bnd prefix (f2) may precede it.
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

  static std::uint32_t instruction_at(std::string_view code, std::size_t at) {
    std::uint32_t instruction = 0;
    if (at + sizeof(instruction) <= code.size()) std::memcpy(&instruction, code.data() + at, sizeof(instruction));
    return instruction;
  }

  /// To the end of "br x17", or of one nop, which some layouts of arm64 have between stubs. At least 1.
  static std::uint64_t arm64_stub_bytes(std::string_view code) {
    constexpr std::uint32_t kNop = 0xd503201f;
    constexpr std::uint32_t kJump = 0xd61f0220;
    if (instruction_at(code, 0) == kNop) return sizeof(kNop);
    for (std::size_t at = 0; at + sizeof(kJump) <= code.size(); at += sizeof(kJump)) {
      if (instruction_at(code, at) == kJump) return at + sizeof(kJump);
    }
    return code.size();
  }

  /// "adrp x16, page; ldr x17, [x16, offset]", perhaps with more before and after (AAELF64, "Procedure linkage table").
  static std::optional<std::uint64_t> arm64_jump_slot(std::string_view stub, std::uint64_t address) {
    constexpr std::uint64_t kPageBytes = 4096;
    for (std::size_t at = 0; at + 8 <= stub.size(); at += 4) {
      const std::uint32_t page = instruction_at(stub, at);
      const std::uint32_t load = instruction_at(stub, at + 4);
      if ((page & 0x9f00001fU) != 0x90000010U || (load & 0xffc003ffU) != 0xf9400211U) continue;
      const std::uint64_t pages = (page >> 5 & 0x7ffffU) << 2 | (page >> 29 & 3U);
      constexpr std::uint64_t kSign = 1U << 20;
      const std::uint64_t base = ((address + at) & ~(kPageBytes - 1)) + ((pages ^ kSign) - kSign) * kPageBytes;
      return base + (load >> 10 & 0xfffU) * 8;
    }
    return std::nullopt;
  }

  ElfSections& module_;
  ElfSections* const debug_;
  std::vector<AddressRange> code_;
  FunctionRanges functions_;
  std::size_t go_count_ = 0;  ///< Go's symbols
  // The builder refers to the contents of these four.
  std::optional<GoModule> go_;
  std::deque<std::string> stub_names_;
  std::string mini_image_;
  std::optional<ElfSections> mini_;
  ElfSymbols::Parts parts_;
};

namespace {

/// Runs `body`, which may run out of memory for a large file.
template <typename Body>
Result<ElfSymbols> at_border(Body body) {
  try {
    return body();
  } catch (const std::exception& e) {
    return Error(std::string("cannot read the symbols: ") + e.what());
  }
}

}  // namespace

Result<ElfSymbols> read_elf_symbols(const ModuleFiles& files) {
  return at_border([&]() -> Result<ElfSymbols> {
    Result<ElfSections> module = ElfSections::open(files.module);
    if (!module) return std::move(module).error();
    std::optional<ElfSections> debug;
    if (files.debug >= 0) {
      if (Result<ElfSections> opened = ElfSections::open(files.debug)) debug.emplace(std::move(opened).value());
    }
    return ElfReader(*module, debug ? &*debug : nullptr).read();
  });
}

Result<ElfSymbols> read_elf_symbols(std::span<const std::byte> image) {
  return at_border([&]() -> Result<ElfSymbols> {
    Result<ElfSections> module = ElfSections::open(image);
    if (!module) return std::move(module).error();
    return ElfReader(*module, nullptr).read();
  });
}

}  // namespace flamed::symbolizer
