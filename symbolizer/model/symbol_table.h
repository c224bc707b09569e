// SPDX-License-Identifier: Apache-2.0
//
// SymbolTable: the functions of one module, for looking addresses up. Immutable once built, so any thread may read it.
//
// A module may have a million functions and flamed keeps many modules, so a table is three flat arrays: where each
// range starts (4 bytes, 8 when the module spans more than 4 GiB), where its name is (4 bytes), and the names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamed::symbolizer {

/// How a symbol may be seen from outside its object file; among several names for one address the more visible wins.
enum class SymbolBinding : std::uint8_t { kGlobal, kWeak, kLocal };

class SymbolTable {
 public:
  class Builder;

  struct Found {
    std::string_view name;     ///< as the module spells it (mangled); lives as long as the table
    std::uint64_t offset = 0;  ///< from the function's start
  };

  SymbolTable() = default;

  /// The function whose range holds `address`; where functions are nested, the innermost.
  [[nodiscard]] std::optional<Found> find(std::uint64_t address) const;

  /// Ranges with a name.
  [[nodiscard]] std::size_t size() const { return named_ranges_; }
  [[nodiscard]] bool empty() const { return named_ranges_ == 0; }
  /// Memory held, for budgets.
  [[nodiscard]] std::size_t bytes() const;

 private:
  friend class ValueCodec;
  static constexpr std::uint32_t kNoName = 0;

  /// A range that resumes after a nested function: its function starts elsewhere.
  struct Resumed {
    std::uint32_t range;
    std::uint64_t function_start;
  };

  [[nodiscard]] std::size_t range_count() const { return names_.size(); }
  [[nodiscard]] std::uint64_t range_start(std::size_t range) const {
    return base_ + (wide_.empty() ? narrow_[range] : wide_[range]);
  }

  // Range i covers [start(i), start(i + 1)); the last range never has a name.
  std::uint64_t base_ = 0;
  std::vector<std::uint32_t> narrow_;  ///< starts - base_; one of the two is empty
  std::vector<std::uint64_t> wide_;
  std::vector<std::uint32_t> names_;  ///< offset in blob_, or kNoName for a gap
  std::vector<Resumed> resumed_;      ///< by range
  std::string blob_;                  ///< NUL-terminated names, after one NUL
  std::size_t named_ranges_ = 0;
};

/// Collects symbols in any order, then builds. Refers to the names until build() returns.
class SymbolTable::Builder {
 public:
  /// `max_name_bytes` bounds the names of the finished table: a hostile string table can make four million symbols
  /// share one long string, which costs nothing in the file and everything here.
  /// Less than 4 GiB, which is what 32-bit name offsets reach.
  explicit Builder(std::uint32_t max_name_bytes = std::uint32_t{256} << 20) : max_name_bytes_(max_name_bytes) {}

  /// A function at [address, address + size), cut at `limit` (its section's end). With size 0, as assembly labels have,
  /// it reaches to the next symbol or `limit`, and counts only outside the functions that have a size.
  void add(std::uint64_t address, std::uint64_t size, std::uint64_t limit, SymbolBinding binding,
           std::string_view name);

  [[nodiscard]] std::size_t count() const { return symbols_.size(); }

  /// Fails when the names exceed the limit, or when there are too many ranges for 32 bits.
  [[nodiscard]] Result<SymbolTable> build() &&;

 private:
  struct Raw {
    std::uint64_t start;
    std::uint64_t end;  ///< == start while the size is unknown
    std::uint64_t limit;
    std::string_view name;
    SymbolBinding binding;
  };
  static bool better_name(const Raw& a, const Raw& b);
  void merge_aliases();
  void give_sizes();

  std::uint32_t max_name_bytes_;
  std::vector<Raw> symbols_;
};

}  // namespace flamed::symbolizer
