// SPDX-License-Identifier: Apache-2.0
//
// ElfUnwindSource: the unwind information of an ELF file as bytes: the input of unwinder::build_rows().
//
// As with symbols, any user can write such a file: every size is checked against the file and a fixed limit before
// memory is allocated, and files are read, never mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/model/sourced_rows.h"
#include "unwinder/rows_builder.h"

namespace flamed::symbolizer {

struct ElfUnwindSource {
  enum class Machine : std::uint8_t {
    kX86_64,
    kArm64,
    kOther,  ///< includes 32-bit files of these two
  };

  /// Bytes of one section with unwind information.
  class Section {
   public:
    enum class Format : std::uint8_t { kEhFrame, kDebugFrame };

    Section(Format format, std::uint64_t address, bool ends_at_terminator, std::unique_ptr<std::byte[]> bytes,
            std::size_t size)
        : format_(format),
          ends_at_terminator_(ends_at_terminator),
          address_(address),
          size_(size),
          bytes_(std::move(bytes)) {}

    [[nodiscard]] Format format() const { return format_; }
    [[nodiscard]] std::uint64_t address() const { return address_; }
    [[nodiscard]] std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }
    /// The section's size isn't known (there are no section headers): it ends at its terminator, at or before the end
    /// of the bytes.
    [[nodiscard]] bool ends_at_terminator() const { return ends_at_terminator_; }

   private:
    Format format_;
    bool ends_at_terminator_;
    std::uint64_t address_;
    std::size_t size_;
    std::unique_ptr<std::byte[]> bytes_;
  };

  /// An executable segment: file bytes [offset, offset + size) appear at virtual `address`.
  struct Segment {
    std::uint64_t address;
    std::uint64_t offset;
    std::uint64_t size;
  };

  /// Stubs for calls to other modules, by virtual address.
  struct Plt {
    std::uint64_t address;
    std::uint64_t size;
    bool is_lazy;  ///< ".plt" itself, whose stubs push a number before they jump; the others only jump
  };

  Machine machine = Machine::kOther;
  /// .eh_frame, then .debug_frame. Both, if a file has both: in Go programs with C code each describes other code.
  std::vector<Section> sections;
  /// By address, without overlaps.
  std::vector<Segment> code;
  /// By address.
  std::vector<Plt> plt;

  /// By virtual address: parts of Go's runtime that its linker describes like any other code (see go_runtime_code.h),
  /// and arm64's stubs.
  std::vector<unwinder::RuledCode> ruled_code;

  /// The parts of the file that all this follows from, among them all headers.
  std::vector<FileRange> ranges;
};

/// Reads `fd`, whose position is neither used nor changed. A file without unwind information is not an error; a file
/// that is not a program or library, is damaged or exceeds a limit is.
Result<ElfUnwindSource> read_elf_unwind_source(int fd);

/// The same from an image in memory, such as the vdso.
Result<ElfUnwindSource> read_elf_unwind_source(std::span<const std::byte> image);

/// Only `machine`, `code` and the section .eh_frame, of an open file.
Result<ElfUnwindSource> read_eh_frame(ElfSections& file);

/// Only arm64's stubs among ElfUnwindSource::ruled_code, of an open file.
std::vector<unwinder::RuledCode> read_stubs(ElfSections& file);

}  // namespace flamed::symbolizer
