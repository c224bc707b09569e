// SPDX-License-Identifier: Apache-2.0
//
// ElfSymbols: the functions of one ELF file, as a value. Immutable, so any thread may read it.
//
// The files are chosen by whoever runs a program on this host, so nothing in them is believed: every size is checked
// against the file and against a fixed limit before memory is spent on it. Files are read, never mapped: a file that
// its owner truncates while it is being parsed gives an error, not a SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbolizer/symbol_table.h"

namespace flamed::symbolizer {

class ElfSymbols {
 public:
  enum class Source : std::uint8_t {
    kNone,    ///< no function symbols at all
    kDynsym,  ///< stripped: only what other modules may call
    kSymtab,
  };

  /// A loadable segment: file bytes [offset, offset + size) appear at `address`.
  struct Segment {
    std::uint64_t offset;
    std::uint64_t size;
    std::uint64_t address;
  };

  /// By *file offset*, which is what Frame::offset is.
  [[nodiscard]] std::optional<SymbolTable::Found> find(std::uint64_t file_offset) const;
  /// The address that the file's own tables (symbols, DWARF) use for the byte at `file_offset`.
  [[nodiscard]] std::optional<std::uint64_t> address_of(std::uint64_t file_offset) const;

  [[nodiscard]] Source source() const { return source_; }
  /// GNU build-id in hex; empty when the file has none.
  [[nodiscard]] const std::string& build_id() const { return build_id_; }
  [[nodiscard]] std::size_t size() const { return table_.size(); }
  /// Memory held, for budgets.
  [[nodiscard]] std::size_t bytes() const;

 private:
  friend class ElfReader;
  SymbolTable table_;
  std::vector<Segment> segments_;
  std::string build_id_;
  Source source_ = Source::kNone;
};

/// Reads the file behind `fd`, whose position doesn't matter and isn't changed: .symtab, or .dynsym where that is
/// missing, and "name@plt" for the stubs of the procedure linkage table (x86-64).
/// A file without symbols is not an error; a file that is no ELF, is damaged or exceeds a limit is.
Result<ElfSymbols> read_elf_symbols(int fd);

/// The same from an image in memory, such as the vdso.
Result<ElfSymbols> read_elf_symbols(std::span<const std::byte> image);

}  // namespace flamed::symbolizer
