// SPDX-License-Identifier: Apache-2.0
//
// ElfSymbols: the functions of one ELF file, as a value. Immutable, so any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "symbolizer/model/function_ranges.h"
#include "symbolizer/model/symbol_table.h"

namespace flamed::symbolizer {

class ElfSymbols {
 public:
  /// The source of the names, from the least to the most complete.
  enum class Source : std::uint8_t {
    kNone,           ///< no function symbols at all
    kDynsym,         ///< stripped: only exported functions
    kMiniDebugInfo,  ///< .dynsym, and .gnu_debugdata for the rest
    kDebugFile,      ///< .symtab of the separate debug file
    kGo,             ///< .gopclntab
    kSymtab,         ///< .symtab of the module itself
  };

  /// A loadable segment: file bytes [offset, offset + size) appear at `address`.
  struct Segment {
    std::uint64_t offset;
    std::uint64_t size;
    std::uint64_t address;
  };

  /// By *file offset*, like Frame::offset.
  [[nodiscard]] std::optional<SymbolTable::Found> find(std::uint64_t file_offset) const;
  /// The file offset of the first byte of the function without a name there; none: no function is described there, or
  /// all of it has a name.
  [[nodiscard]] std::optional<std::uint64_t> find_unnamed(std::uint64_t file_offset) const;
  /// The file offsets of the function there, as far as it has one name; none: no function is known there.
  [[nodiscard]] std::optional<CodeRange> function_at(std::uint64_t file_offset) const;
  /// The address that the file's own tables (symbols, DWARF) use for the byte at `file_offset`.
  [[nodiscard]] std::optional<std::uint64_t> address_of(std::uint64_t file_offset) const;

  /// Its parts, for sending them to another process.
  struct Parts {
    SymbolTable table{};
    std::vector<Segment> segments{};
    std::string build_id{};
    Source source = Source::kNone;
    CodeRange go_code{};
    FunctionRanges unnamed{};  ///< those that `table` does not name as a whole
  };
  ElfSymbols() = default;
  explicit ElfSymbols(Parts parts) : parts_(std::move(parts)) {}
  [[nodiscard]] const Parts& parts() const& { return parts_; }
  [[nodiscard]] Parts parts() && { return std::move(parts_); }

  [[nodiscard]] Source source() const { return parts_.source; }
  /// GNU build-id in hex; empty if the file has none.
  [[nodiscard]] const std::string& build_id() const { return parts_.build_id; }
  /// Whether the module has Go code, and whether an address is in it. The same file may have C code.
  [[nodiscard]] bool is_go() const { return parts_.go_code.end != 0; }
  [[nodiscard]] bool is_go_at(std::uint64_t file_offset) const;
  [[nodiscard]] std::size_t size() const { return parts_.table.size(); }
  /// Whether it has functions that have no name.
  [[nodiscard]] bool has_unnamed() const { return parts_.unnamed.size() != 0; }
  /// Its memory, for budgets.
  [[nodiscard]] std::size_t bytes() const;

 private:
  [[nodiscard]] const Segment* segment_of(std::uint64_t file_offset) const;

  Parts parts_;
};

}  // namespace flamed::symbolizer
