// SPDX-License-Identifier: Apache-2.0
//
// DwarfSections: the debug sections of one ELF file, read piece by piece as they are asked for. One thread at a time.
// The descriptor must stay open as long as this lives.
//
// Of a section as it stands in the file only the piece in use is in memory; a compressed one is inflated whole, within
// a limit on all of them together, when it is first asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "symbolizer/elf/elf_sections.h"

namespace flamed::symbolizer {

enum class DwarfSection : std::uint8_t {
  kInfo,
  kAbbrev,
  kLine,
  kLineStr,
  kStr,
  kStrOffsets,
  kAddr,
  kRanges,
  kRngLists,
};
inline constexpr std::size_t kDwarfSections = 9;

class DwarfSections {
 public:
  /// Bytes [offset, offset + size) of the file are at `address` when it runs.
  struct Segment {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t address = 0;
  };

  /// A file that is no program or shared library, or has damaged headers, is an error; one without debug sections
  /// is not.
  static Result<DwarfSections> open(int fd);

  /// Executable ones, in the order of the file.
  [[nodiscard]] const std::vector<Segment>& code() const { return code_; }
  /// Bytes, after inflating; 0 when the file has no such section or it can't be had.
  [[nodiscard]] std::uint64_t size(DwarfSection which);

  /// What is at `offset`: at least `wanted` bytes, unless the section ends before, and none when it can't be read.
  /// Good until the next call for the same section.
  std::span<const std::byte> view(DwarfSection which, std::uint64_t offset, std::size_t wanted);
  /// The same, to keep: exactly `wanted` bytes, from `storage` where they had to be copied, or none.
  std::span<const std::byte> keep(DwarfSection which, std::uint64_t offset, std::size_t wanted,
                                  std::vector<std::byte>& storage);

 private:
  struct Section {
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t size = 0;    ///< in the file; after inflating, in memory
    ::Elf_Scn* scn = nullptr;
    bool is_compressed = false;
    bool is_gnu_compressed = false;       ///< "ZLIB", big-endian u64 size, stream: before there was SHF_COMPRESSED
    const std::byte* inflated = nullptr;  ///< libelf's
    std::unique_ptr<std::byte[]> window;  ///< the piece of the file in use
    std::size_t window_capacity = 0;
    std::size_t window_size = 0;
    std::uint64_t window_offset = 0;
  };

  explicit DwarfSections(std::unique_ptr<ElfSections> elf) : elf_(std::move(elf)) {}
  Status find();
  void inflate(Section& section);

  std::unique_ptr<ElfSections> elf_;  ///< at a fixed place: its sections' names point into it
  std::vector<Segment> code_;
  std::array<Section, kDwarfSections> sections_;
  std::uint64_t inflated_bytes_ = 0;
};

}  // namespace flamed::symbolizer
