// SPDX-License-Identifier: Apache-2.0
//
// GoLineTable: the tables that the Go linker writes into each program for the runtime's own tracebacks: functions,
// files, lines and inlined calls. strip keeps them, since the program needs them to run. Pure: bytes in, values out;
// immutable, so any thread may read it. It refers to the bytes, which must outlive it.
//
// Anybody may have written the bytes: every offset is checked, every loop is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbolizer/model/source_chain.h"

namespace flamed::symbolizer {

/// The needed parts of a Go program, after relocation, in this host's byte order.
struct GoParts {
  std::string_view line_table;  ///< .gopclntab, from its header to its end
  /// The base of the functions' offsets: moduledata.text. Before Go 1.18 functions have addresses and this is unused.
  std::uint64_t text_start = 0;
  /// The bytes with the trees of inlined calls, and the address of the first one. From Go 1.18 on this must be
  /// moduledata.gofunc (go:func.*). Empty: inlined functions stay unknown.
  std::string_view function_data{};
  std::uint64_t function_data_address = 0;
};

class GoLineTable {
 public:
  /// The formats differ in which values are offsets, and in their bases.
  enum class Format : std::uint8_t { kGo12, kGo116, kGo118, kGo120 };

  struct Function {
    std::uint64_t entry = 0;  ///< address
    std::uint64_t end = 0;    ///< start of the next function, so with padding
    std::string_view name;    ///< "main.work", "slices.Sort[...]"; empty if damaged
  };

  /// The positions of the tables, from the first bytes of .gopclntab.
  struct Header {
    Format format = Format::kGo12;
    std::uint32_t quantum = 1;  ///< bytes; instructions start at multiples of it
    std::uint32_t pointer_bytes = 8;
    std::uint64_t functions = 0;
    std::uint64_t text_start = 0;  ///< from Go 1.18 on; may be 0 before relocation
    std::uint64_t names = 0;       ///< this and the following are offsets from the header
    std::uint64_t units = 0;       ///< from Go 1.16 on: files of each compilation unit
    std::uint64_t files = 0;
    std::uint64_t values = 0;
    std::uint64_t function_table = 0;
  };
  static Result<Header> read_header(std::string_view line_table);

  /// Fails on an unknown format, on tables outside of the bytes, on too many functions, and if their addresses don't
  /// ascend.
  static Result<GoLineTable> parse(const GoParts& parts);

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(header_.functions); }
  [[nodiscard]] Function function(std::size_t index) const;

  /// The bytes that a function has on the stack, its return address not among them.
  struct StackDepth {
    std::uint64_t distance = 0;  ///< of the first address with it, from the entry
    std::uint64_t size = 0;      ///< of the code with it
    std::int32_t bytes = 0;
  };
  /// Of function `index`, from its entry on, in order, without gaps; up to where its table is damaged. In code that
  /// changes stacks, as if it did not.
  [[nodiscard]] std::vector<StackDepth> stack_depths(std::size_t index) const;

  /// Addresses of Go's code: [start, end).
  [[nodiscard]] std::uint64_t start() const;
  [[nodiscard]] std::uint64_t end() const;

  /// The chain of inlined functions at `address`, with the lines of their calls. Empty outside of the functions.
  /// Damaged parts are left out.
  [[nodiscard]] SourceChain locate(std::uint64_t address) const;

 private:
  struct Layout;
  struct Record;

  GoLineTable(const GoParts& parts, const Header& header) : parts_(parts), header_(header) {}
  [[nodiscard]] const Layout& layout() const;
  [[nodiscard]] std::uint64_t entry(std::size_t index) const;
  [[nodiscard]] std::optional<Record> record(std::size_t index) const;
  [[nodiscard]] std::string_view name_at(std::uint32_t offset) const;
  template <typename Visit>
  void for_each_value(std::uint32_t table, Visit&& visit) const;
  [[nodiscard]] std::optional<std::int32_t> value_at(std::uint32_t table, std::uint64_t distance) const;
  [[nodiscard]] std::string_view file_at(const Record& record, std::uint64_t distance) const;
  [[nodiscard]] std::uint32_t line_at(const Record& record, std::uint64_t distance) const;
  [[nodiscard]] std::optional<std::uint32_t> pc_data(const Record& record, std::uint32_t index) const;
  [[nodiscard]] std::optional<std::uint64_t> inline_tree(const Record& record) const;

  GoParts parts_;
  Header header_;
};

}  // namespace flamed::symbolizer
