// SPDX-License-Identifier: Apache-2.0
//
// DwarfSections: the debug sections of one ELF file, read piece by piece on demand. One thread at a time. The
// descriptor must outlive it.
//
// Only the current piece of an uncompressed section is in memory; a compressed section is inflated whole at its first
// use, within a limit for all of them together.
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

  /// A file that is not a program or shared library, or has damaged headers, is an error; one without debug sections is
  /// not.
  static Result<DwarfSections> open(int fd);

  /// Executable ones, in the order of the file.
  [[nodiscard]] const std::vector<Segment>& code() const { return code_; }
  /// In bytes, after inflating; 0 if the file has no such section or it can't be read.
  [[nodiscard]] std::uint64_t size(DwarfSection which);

  /// The bytes at `offset`: at least `wanted`, unless the section ends before, and none if it can't be read. Valid
  /// until the next call for the same section.
  std::span<const std::byte> view(DwarfSection which, std::uint64_t offset, std::size_t wanted);
  /// The same, valid longer: exactly `wanted` bytes, in `storage` if they had to be copied, or none.
  std::span<const std::byte> keep(DwarfSection which, std::uint64_t offset, std::size_t wanted,
                                  std::vector<std::byte>& storage);

 private:
  struct Section {
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t size = 0;    ///< in the file; after inflating, in memory
    ::Elf_Scn* scn = nullptr;
    bool is_compressed = false;
    bool is_gnu_compressed = false;       ///< "ZLIB", big-endian u64 size, stream: the format before SHF_COMPRESSED
    const std::byte* inflated = nullptr;  ///< libelf's
    std::unique_ptr<std::byte[]> window;  ///< the current piece of the file
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
