// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/elf_unwind_source.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "symbolizer/elf/elf_input.h"
#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/go/go_frames.h"
#include "symbolizer/go/go_module.h"
#include "symbolizer/reader/go_runtime_code.h"

namespace flamed::symbolizer {
namespace {

// A browser of 300 MB has 40 MB of .eh_frame.
constexpr std::uint64_t kMaxUnwindBytes = std::uint64_t{512} << 20;
constexpr std::size_t kMaxUnwindSections = 8;
constexpr std::size_t kMaxPltSections = 64;

/// One reading of one file.
class Reader {
 public:
  explicit Reader(ElfSections& file) : file_(file), input_(file.input()) {}

  Result<ElfUnwindSource> read() {
    if (Status status = file_.check_loadable(); !status) return std::move(status).error();
    read_machine();
    note_headers();
    if (Status status = read_segments(); !status) return std::move(status).error();
    if (Status status = read_sections(); !status) return std::move(status).error();
    if (Status status = read_without_sections(); !status) return std::move(status).error();
    if (source_.machine == ElfUnwindSource::Machine::kX86_64) {
      if (Status status = read_go(); !status) return std::move(status).error().with_context("Go's tables");
    }
    if (source_.machine == ElfUnwindSource::Machine::kArm64) rule_stubs();
    std::stable_sort(source_.sections.begin(), source_.sections.end(),
                     [](const auto& a, const auto& b) { return a.format() < b.format(); });
    std::sort(source_.plt.begin(), source_.plt.end(),
              [](const auto& a, const auto& b) { return a.address < b.address; });
    std::erase_if(source_.ranges, [](const FileRange& range) { return range.size == 0; });
    return std::move(source_);
  }

  Result<ElfUnwindSource> read_eh_frame() {
    read_machine();
    if (Status status = read_segments(); !status) return std::move(status).error();
    if (const ElfSections::Section* const section = file_.with_bytes(".eh_frame"); section != nullptr) {
      if (Status status = add_section(Format::kEhFrame, *section); !status) return std::move(status).error();
    }
    if (Status status = read_without_sections(); !status) return std::move(status).error();
    return std::move(source_);
  }

  std::vector<unwinder::RuledCode> read_stubs() {
    read_machine();
    if (source_.machine != ElfUnwindSource::Machine::kArm64) return {};
    for (const ElfSections::Section& section : file_.all()) note_stubs(section);
    rule_stubs();
    return std::move(source_.ruled_code);
  }

 private:
  using Format = ElfUnwindSource::Section::Format;

  void read_machine() {
    const GElf_Ehdr& header = file_.header();
    if (header.e_ident[EI_CLASS] != ELFCLASS64) return;
    if (header.e_machine == EM_X86_64) source_.machine = ElfUnwindSource::Machine::kX86_64;
    if (header.e_machine == EM_AARCH64) source_.machine = ElfUnwindSource::Machine::kArm64;
  }

  void note_headers() {
    const GElf_Ehdr& header = file_.header();
    source_.ranges.push_back({0, header.e_ehsize});
    source_.ranges.push_back({header.e_phoff, file_.segments().size() * header.e_phentsize});
    // With section 0, which is not among them.
    const std::uint64_t sections = header.e_shoff == 0 ? 0 : file_.all().size() + 1;
    source_.ranges.push_back({header.e_shoff, sections * header.e_shentsize});
    for (const char* name : {".shstrtab", ".note.gnu.build-id"}) {
      const ElfSections::Section* const section = file_.with_bytes(name);
      if (section != nullptr) source_.ranges.push_back({section->header.sh_offset, section->header.sh_size});
    }
  }

  Status read_segments() {
    for (const GElf_Phdr& phdr : file_.segments()) {
      if (phdr.p_type == PT_GNU_EH_FRAME) frame_header_ = phdr;
      if (phdr.p_type != PT_LOAD) continue;
      // Separate debug files keep program headers whose bytes are elsewhere.
      if (phdr.p_offset > input_.size()) continue;
      const ElfUnwindSource::Segment segment{phdr.p_vaddr, phdr.p_offset,
                                             std::min<std::uint64_t>(phdr.p_filesz, input_.size() - phdr.p_offset)};
      if (segment.size == 0) continue;
      if (segment.address + segment.size < segment.address) {
        return Error("damaged: a segment reaches over the end of the address space");
      }
      loaded_.push_back(segment);
      if ((phdr.p_flags & PF_X) != 0) source_.code.push_back(segment);
    }
    std::sort(source_.code.begin(), source_.code.end(),
              [](const auto& a, const auto& b) { return a.address < b.address; });
    for (std::size_t i = 1; i < source_.code.size(); ++i) {
      if (source_.code[i].address - source_.code[i - 1].address < source_.code[i - 1].size) {
        return Error("damaged: executable segments overlap");
      }
    }
    return {};
  }

  Status read_sections() {
    for (const ElfSections::Section& section : file_.all()) {
      const GElf_Shdr& header = section.header;
      const std::string_view name = section.name;
      if (header.sh_type == SHT_NOBITS) continue;
      Status status;
      if (name == ".eh_frame") {
        status = add_section(Format::kEhFrame, section);
      } else if (name == ".debug_frame" || name == ".zdebug_frame") {
        status = add_section(Format::kDebugFrame, section);
      } else {
        note_stubs(section);
      }
      if (!status) return std::move(status).error().with_context(name);
    }
    return {};
  }

  void note_stubs(const ElfSections::Section& section) {
    const GElf_Shdr& header = section.header;
    const std::string_view name = section.name;
    if (name != ".iplt" && name != ".plt" && name.substr(0, 5) != ".plt.") return;
    const bool is_code = header.sh_type == SHT_PROGBITS && (header.sh_flags & SHF_EXECINSTR) != 0;
    if (is_code && source_.plt.size() < kMaxPltSections) {
      source_.plt.push_back({header.sh_addr, header.sh_size, name == ".plt"});
    }
  }

  /// Linkers for arm64 describe no stub. Each loads an address and jumps there, and leaves the stack and lr as they
  /// are. Not so the first one of ".plt", by which the others find their function at the first call: it pushes lr.
  void rule_stubs() {
    constexpr std::uint64_t kFirstBytes = 32;
    unwinder::Rule rule;
    rule.cfa = unwinder::CfaKind::kSpOffset;
    rule.ra = unwinder::RaKind::kInLr;
    for (const ElfUnwindSource::Plt& plt : source_.plt) {
      const std::uint64_t skipped = plt.is_lazy ? kFirstBytes : 0;
      if (plt.size > skipped) source_.ruled_code.push_back({{plt.address + skipped, plt.size - skipped}, rule});
    }
  }

  /// Stacks go on without it: by .debug_frame, by frame pointers, or to where the runtime switches stacks.
  Status read_go() {
    const Result<std::optional<GoModule>> go = GoModule::read(file_, GoModule::With::kNames);
    if (!go || !go->has_value()) return {};
    const GoModule& module = **go;
    const std::vector<std::byte> frames = go_frames(module.table(), kMaxUnwindBytes - unwind_bytes_);
    if (Status status = account(frames.size()); !status) return status;
    auto bytes = std::make_unique_for_overwrite<std::byte[]>(frames.size());
    std::copy(frames.begin(), frames.end(), bytes.get());
    // Before the linker's own .debug_frame.
    source_.sections.emplace(source_.sections.begin(), Format::kDebugFrame, 0, false, std::move(bytes), frames.size());
    source_.ruled_code = go_runtime_code(find_go_runtime(
        module.table(), [this](std::uint64_t address, std::span<char> to) { return read_code(address, to); }));
    source_.ranges.insert(source_.ranges.end(), module.ranges().begin(), module.ranges().end());
    return {};
  }

  /// The bytes at `address`, if the file has them.
  bool read_code(std::uint64_t address, std::span<char> to) {
    for (const ElfUnwindSource::Segment& segment : source_.code) {
      if (address < segment.address || address - segment.address >= segment.size) continue;
      const std::uint64_t into = address - segment.address;
      if (to.size() > segment.size - into) return false;
      source_.ranges.push_back({segment.offset + into, to.size()});
      return input_.read(segment.offset + into, to.data(), to.size());
    }
    return false;
  }

  /// Call it before allocating `size` more bytes.
  Status account(std::uint64_t size) {
    if (size > kMaxUnwindBytes - unwind_bytes_) {
      return Error("unwind information of " + std::to_string(size) + " bytes, more than the limit of " +
                   std::to_string(kMaxUnwindBytes));
    }
    unwind_bytes_ += size;
    return {};
  }

  Status add_bytes(Format format, std::uint64_t address, bool ends_at_terminator, std::uint64_t offset,
                   std::uint64_t size) {
    if (offset > input_.size() || size > input_.size() - offset) return Error("truncated: it lies outside the file");
    if (Status status = account(size); !status) return status;
    auto bytes = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size));
    if (!input_.read(offset, bytes.get(), static_cast<std::size_t>(size))) return Error("truncated while it was read");
    source_.ranges.push_back({offset, size});
    source_.sections.emplace_back(format, address, ends_at_terminator, std::move(bytes),
                                  static_cast<std::size_t>(size));
    return {};
  }

  Status add_section(Format format, const ElfSections::Section& section) {
    const GElf_Shdr& shdr = section.header;
    if (shdr.sh_size == 0) return {};
    if (source_.sections.size() >= kMaxUnwindSections) return Error("more such sections than make sense");
    // Go's compression of .debug_frame before SHF_COMPRESSED: "ZLIB", big-endian u64 size, stream.
    std::array<char, 4> magic{};
    const bool is_gnu_compressed = (shdr.sh_flags & (SHF_COMPRESSED | SHF_ALLOC)) == 0 && shdr.sh_size >= 12 &&
                                   input_.read(shdr.sh_offset, magic.data(), magic.size()) &&
                                   std::string_view(magic.data(), magic.size()) == "ZLIB";
    if ((shdr.sh_flags & SHF_COMPRESSED) == 0 && !is_gnu_compressed) {
      return add_bytes(format, shdr.sh_addr, false, shdr.sh_offset, shdr.sh_size);
    }
    return add_compressed(format, section, is_gnu_compressed);
  }

  Status add_compressed(Format format, const ElfSections::Section& section, bool is_gnu_compressed) {
    ::Elf_Scn* const scn = section.scn;
    const GElf_Shdr& shdr = section.header;
    // libelf reads the section at the first access to it.
    if (shdr.sh_offset > input_.size() || shdr.sh_size > input_.size() - shdr.sh_offset) {
      return Error("truncated: it lies outside the file");
    }
    if (Status status = account(shdr.sh_size); !status) return status;
    std::uint64_t size = 0;
    if (is_gnu_compressed) {
      if (!input_.read(shdr.sh_offset + 4, &size, sizeof(size))) return Error("truncated while it was read");
      size = __builtin_bswap64(size);
    } else {
      GElf_Chdr chdr{};
      if (::gelf_getchdr(scn, &chdr) == nullptr) return libelf_error("cannot read its compression header");
      size = chdr.ch_size;
    }
    if (Status status = account(size); !status) return status;
    if ((is_gnu_compressed ? ::elf_compress_gnu(scn, 0, 0) : ::elf_compress(scn, 0, 0)) < 0) {
      return libelf_error("cannot decompress it");
    }
    const ::Elf_Data* data = ::elf_rawdata(scn, nullptr);
    if (data == nullptr || data->d_buf == nullptr) return libelf_error("cannot decompress it");
    auto bytes = std::make_unique_for_overwrite<std::byte[]>(data->d_size);
    std::memcpy(bytes.get(), data->d_buf, data->d_size);
    source_.sections.emplace_back(format, shdr.sh_addr, false, std::move(bytes), data->d_size);
    source_.ranges.push_back({shdr.sh_offset, shdr.sh_size});
    return {};
  }

  Status read_without_sections() {
    // In separate debug files .eh_frame is elsewhere (SHT_NOBITS), but their program headers still refer to it.
    if (file_.named(".eh_frame") != nullptr || !frame_header_) return {};
    Status status = read_from_frame_header();
    if (!status) return std::move(status).error().with_context("PT_GNU_EH_FRAME");
    return {};
  }

  /*
   * PT_GNU_EH_FRAME holds .eh_frame_hdr (LSB Core, "The .eh_frame_hdr section"):
   *   u8 version (1), u8 encoding of the next, u8, u8, pointer to .eh_frame, search table
   * The size of .eh_frame is not in it: what follows .eh_frame in its segment is taken along, and its terminator ends
   * it.
   */
  Status read_from_frame_header() {
    const std::uint64_t address = frame_header_->p_vaddr;
    std::array<unsigned char, 12> bytes{};
    if (!input_.read(frame_header_->p_offset, bytes.data(), bytes.size())) return Error("truncated");
    if (bytes[0] != 1) return Error("unknown version " + std::to_string(bytes[0]));

    std::uint64_t wide = 0;
    std::int32_t narrow = 0;
    std::memcpy(&wide, &bytes[4], sizeof(wide));
    std::memcpy(&narrow, &bytes[4], sizeof(narrow));
    const std::uint64_t extended = static_cast<std::uint64_t>(std::int64_t{narrow});
    std::uint64_t frames = 0;
    switch (bytes[1]) {
      case 0x00:  // absolute
        frames = wide;
        break;
      case 0x1b:  // pc-relative, 4 bytes, signed: the linkers' choice
        frames = address + 4 + extended;
        break;
      case 0x1c:  // pc-relative, 8 bytes
        frames = address + 4 + wide;
        break;
      case 0x3b:  // relative to this header's start, 4 bytes, signed
        frames = address + extended;
        break;
      default:
        return Error("unknown pointer encoding " + std::to_string(bytes[1]));
    }
    for (const ElfUnwindSource::Segment& segment : loaded_) {
      if (frames < segment.address || frames - segment.address >= segment.size) continue;
      const std::uint64_t into = frames - segment.address;
      return add_bytes(Format::kEhFrame, frames, true, segment.offset + into, segment.size - into);
    }
    return Error("it points outside all segments");
  }

  ElfSections& file_;
  const ElfInput& input_;
  std::optional<GElf_Phdr> frame_header_;
  std::vector<ElfUnwindSource::Segment> loaded_;
  std::uint64_t unwind_bytes_ = 0;
  ElfUnwindSource source_;
};

/// Turns running out of memory into an Error.
template <typename Input>
Result<ElfUnwindSource> read_input(const Input& input) {
  try {
    Result<ElfSections> file = ElfSections::open(input);
    if (!file) return std::move(file).error();
    return Reader(*file).read();
  } catch (const std::exception& e) {
    return Error(std::string("cannot read the unwind information: ") + e.what());
  }
}

}  // namespace

Result<ElfUnwindSource> read_elf_unwind_source(int fd) { return read_input(fd); }

Result<ElfUnwindSource> read_elf_unwind_source(std::span<const std::byte> image) { return read_input(image); }

Result<ElfUnwindSource> read_eh_frame(ElfSections& file) { return Reader(file).read_eh_frame(); }

std::vector<unwinder::RuledCode> read_stubs(ElfSections& file) { return Reader(file).read_stubs(); }

}  // namespace flamed::symbolizer
