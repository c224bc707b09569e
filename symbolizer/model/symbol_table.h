// SPDX-License-Identifier: Apache-2.0
//
// SymbolTable: the functions of one module by address. Immutable once built, so any thread may read it.
//
// A module may have a million functions and flamed keeps many modules, so a table is three flat arrays: the starts of
// ranges (4 bytes each, 8 if the module spans more than 4 GiB), the offsets of their names (4 bytes each), and the
// names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamed::symbolizer {

/// A symbol's visibility; of several names for one address the most visible one is used.
enum class SymbolBinding : std::uint8_t { kGlobal, kWeak, kLocal };

class SymbolTable {
 public:
  class Builder;

  struct Found {
    std::string_view name;     ///< as the module spells it (mangled); valid as long as the table
    std::uint64_t offset = 0;  ///< from the function's start
    std::uint64_t left = 0;    ///< to the end of the function, or to one that is nested in it
  };

  SymbolTable() = default;

  /// The function whose range has `address`; the innermost one if functions are nested.
  [[nodiscard]] std::optional<Found> find(std::uint64_t address) const;

  /// Ranges with a name.
  [[nodiscard]] std::size_t size() const { return named_ranges_; }
  [[nodiscard]] bool empty() const { return named_ranges_ == 0; }
  /// Its memory, for budgets.
  [[nodiscard]] std::size_t bytes() const;

 private:
  friend class ValueCodec;
  static constexpr std::uint32_t kNoName = 0;

  /// A range that continues a function after a nested one: its function starts elsewhere.
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
  std::vector<std::uint32_t> narrow_;  ///< starts - base_; one of the two arrays is empty
  std::vector<std::uint64_t> wide_;
  std::vector<std::uint32_t> names_;  ///< offset in blob_, or kNoName for a gap
  std::vector<Resumed> resumed_;      ///< by range
  std::string blob_;                  ///< NUL-terminated names, after one NUL
  std::size_t named_ranges_ = 0;
};

/// Collects symbols in any order, then builds. Refers to the names until build() returns.
class SymbolTable::Builder {
 public:
  /// `max_name_bytes` bounds the names of the table: in a hostile string table four million symbols can share one long
  /// string, which is small in the file and huge here. Less than 4 GiB, the reach of 32-bit name offsets.
  explicit Builder(std::uint32_t max_name_bytes = std::uint32_t{256} << 20) : max_name_bytes_(max_name_bytes) {}

  /// A function at [address, address + size), cut at `limit` (its section's end). With size 0, as for assembly labels,
  /// it reaches to the next symbol or `limit`, and counts only outside of functions with a size.
  void add(std::uint64_t address, std::uint64_t size, std::uint64_t limit, SymbolBinding binding,
           std::string_view name);

  [[nodiscard]] std::size_t count() const { return symbols_.size(); }

  /// Fails if the names exceed the limit, or if there are too many ranges for 32 bits.
  [[nodiscard]] Result<SymbolTable> build() &&;

 private:
  struct Raw {
    std::uint64_t start;
    std::uint64_t end;  ///< == start while the size is unknown
    std::uint64_t limit;
    std::string_view name;
    SymbolBinding binding;
  };
  /// Ends where the next one starts.
  struct Range {
    std::uint64_t start;
    std::size_t symbol;  ///< in symbols_, or kGap
  };
  static constexpr std::size_t kGap = std::numeric_limits<std::size_t>::max();

  static bool better_name(const Raw& a, const Raw& b);
  void merge_aliases();
  void give_sizes();
  [[nodiscard]] std::vector<Range> flatten() const;
  void merge_same_names(std::vector<Range>& ranges) const;
  [[nodiscard]] SymbolTable fill(const std::vector<Range>& ranges, std::size_t name_bytes) const;

  std::uint32_t max_name_bytes_;
  std::vector<Raw> symbols_;
};

}  // namespace flamed::symbolizer
