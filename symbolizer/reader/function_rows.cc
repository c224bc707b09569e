// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/function_rows.h"

#include <elf.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "symbolizer/elf/elf_input.h"
#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/reader/elf_unwind_source.h"
#include "unwinder/encoded_pointer.h"
#include "unwinder/file_rows.h"
#include "unwinder/rows_builder.h"

namespace flamed::symbolizer {
namespace {

#if defined(__aarch64__)
constexpr GElf_Half kMachine = EM_AARCH64;
constexpr auto kArchitecture = unwinder::Architecture::kArm64;
#else
constexpr GElf_Half kMachine = EM_X86_64;
constexpr auto kArchitecture = unwinder::Architecture::kX86_64;
#endif

/// The largest function of a Debian system, a generated one, has 220 KB of instructions for its unwinding.
constexpr std::uint32_t kMaxRecordBytes = 1U << 20;

/*
 * .eh_frame_hdr (LSB Core, "The .eh_frame_hdr section"):
 *
 *   u8 version (1), u8 encoding of the pointer, u8 encoding of the count, u8 encoding of the table
 *   pointer to .eh_frame, count
 *   table: pairs of a function's first address and its FDE's address, sorted
 *
 * Linkers write 4 bytes for each number, in the table relative to the header.
 */
class SearchTable {
 public:
  /// Empty: there is none that a linker would write.
  static std::optional<SearchTable> find(const ElfSections& file) {
    const auto& segments = file.segments();
    const auto found = std::find_if(segments.begin(), segments.end(),
                                    [](const GElf_Phdr& segment) { return segment.p_type == PT_GNU_EH_FRAME; });
    if (found == segments.end()) return std::nullopt;
    std::array<unsigned char, 4> encodings{};
    std::array<std::uint32_t, 2> numbers{};
    const ElfInput& input = file.input();
    if (!input.read(found->p_offset, encodings.data(), encodings.size()) ||
        !input.read(found->p_offset + encodings.size(), numbers.data(), sizeof(numbers)))
      return std::nullopt;
    constexpr std::uint8_t kUnsigned4 = 0x03;
    constexpr std::uint8_t kSigned4 = 0x0b;
    const bool has_narrow_pointer = (encodings[1] & unwinder::kEncodingFormatMask) == kSigned4;
    if (encodings[0] != 1 || !has_narrow_pointer || encodings[2] != kUnsigned4 ||
        encodings[3] != (unwinder::kEncodingDataRelative | kSigned4))
      return std::nullopt;
    SearchTable table(input);
    table.address_ = found->p_vaddr;
    table.first_ = found->p_offset + encodings.size() + sizeof(numbers);
    table.count_ = numbers[1];
    return table;
  }

  /// The address of the FDE of the last function that begins at or before `address`.
  [[nodiscard]] std::optional<std::uint64_t> find_fde(std::uint64_t address) const {
    std::uint64_t low = 0;
    std::uint64_t high = count_;
    std::optional<std::uint64_t> found;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      std::array<std::int32_t, 2> entry{};
      if (!input_->read(first_ + middle * sizeof(entry), entry.data(), sizeof(entry))) return std::nullopt;
      const auto absolute = [&](std::int32_t distance) {
        return address_ + static_cast<std::uint64_t>(std::int64_t{distance});
      };
      if (absolute(entry[0]) <= address) {
        found = absolute(entry[1]);
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return found;
  }

 private:
  explicit SearchTable(const ElfInput& input) : input_(&input) {}

  const ElfInput* input_;
  std::uint64_t address_ = 0;  ///< virtual, of the header
  std::uint64_t first_ = 0;    ///< file offset of the table
  std::uint64_t count_ = 0;
};

/// One reading of one file.
class Reader {
 public:
  Reader(ElfSections& file, const SearchTable& table) : input_(file.input()), table_(table), stubs_(read_stubs(file)) {
    for (const GElf_Phdr& segment : file.segments()) {
      if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
      const unwinder::CodeSegment loaded{segment.p_vaddr, segment.p_offset, segment.p_filesz};
      loaded_.push_back(loaded);
      if ((segment.p_flags & PF_X) != 0) code_.push_back(loaded);
    }
    std::sort(code_.begin(), code_.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
    for (const unwinder::CodeSegment& segment : code_) ranges_.push_back({segment.address, segment.size});
  }

  [[nodiscard]] unwinder::UnwindRows rows_at(std::uint64_t offset) const {
    const std::optional<std::uint64_t> address = address_of(offset);
    if (!address) return {};
    for (const unwinder::RuledCode& stubs : stubs_) {
      if (*address - stubs.range.address < stubs.range.size) {
        return build({kArchitecture, {}, ranges_, 0, {&stubs, 1}}, offset);
      }
    }
    const std::optional<std::uint64_t> fde = table_.find_fde(*address);
    if (!fde) return {};
    std::vector<std::byte> record = read_record(*fde);
    // The distance back to the CIE, from where the distance stands.
    constexpr std::size_t kIdAt = 4;
    std::uint32_t distance = 0;
    if (record.size() < kIdAt + sizeof(distance)) return {};
    std::memcpy(&distance, record.data() + kIdAt, sizeof(distance));
    std::vector<std::byte> section = read_record(*fde + kIdAt - distance);
    if (section.empty()) return {};

    // A section of these two: the CIE, and the FDE at its own address.
    distance = static_cast<std::uint32_t>(section.size() + kIdAt);
    std::memcpy(record.data() + kIdAt, &distance, sizeof(distance));
    unwinder::FrameSection frames;
    frames.address = *fde - section.size();
    section.insert(section.end(), record.begin(), record.end());
    frames.bytes = section;
    return build({kArchitecture, {&frames, 1}, ranges_}, offset);
  }

 private:
  /// No rows if there are none at `offset`.
  [[nodiscard]] unwinder::UnwindRows build(const unwinder::BuildInput& input, std::uint64_t offset) const {
    Result<unwinder::UnwindRows> rows = unwinder::build_rows(input);
    if (rows) rows = unwinder::by_file_offset(std::move(rows).value(), code_);
    if (!rows || rows->rows.empty()) return {};
    const std::uint64_t first = rows->base + rows->rows.front().offset;
    const std::uint64_t end = rows->base + rows->rows.back().offset;
    if (offset < first || offset >= end) return {};
    return std::move(rows).value();
  }

  [[nodiscard]] std::optional<std::uint64_t> address_of(std::uint64_t offset) const {
    for (const unwinder::CodeSegment& segment : code_) {
      if (offset - segment.offset < segment.size) return segment.address + (offset - segment.offset);
    }
    return std::nullopt;
  }

  /// The record at a virtual address, with its length; empty if there is none of a usual size.
  [[nodiscard]] std::vector<std::byte> read_record(std::uint64_t address) const {
    for (const unwinder::CodeSegment& segment : loaded_) {
      if (address - segment.address >= segment.size) continue;
      const std::uint64_t offset = segment.offset + (address - segment.address);
      std::uint32_t length = 0;
      if (!input_.read(offset, &length, sizeof(length)) || length == 0 || length > kMaxRecordBytes) return {};
      std::vector<std::byte> record(sizeof(length) + length);
      if (!input_.read(offset, record.data(), record.size())) return {};
      return record;
    }
    return {};
  }

  const ElfInput& input_;
  const SearchTable& table_;
  std::vector<unwinder::RuledCode> stubs_;
  std::vector<unwinder::CodeSegment> loaded_, code_;
  std::vector<unwinder::AddressRange> ranges_;
};

}  // namespace

Result<std::vector<unwinder::UnwindRows>> read_function_rows(int fd, std::span<const std::uint64_t> offsets) {
  try {
    std::vector<unwinder::UnwindRows> found(offsets.size());
    Result<ElfSections> file = ElfSections::open(fd);
    if (!file) return Error(file.error());
    if (file->header().e_ident[EI_CLASS] != ELFCLASS64 || file->header().e_machine != kMachine) return found;
    const std::optional<SearchTable> table = SearchTable::find(*file);
    if (!table) return found;
    const Reader reader(*file, *table);
    std::transform(offsets.begin(), offsets.end(), found.begin(),
                   [&](std::uint64_t offset) { return reader.rows_at(offset); });
    return found;
  } catch (const std::exception& e) {
    return Error(std::string("cannot read the unwind information: ") + e.what());
  }
}

}  // namespace flamed::symbolizer
