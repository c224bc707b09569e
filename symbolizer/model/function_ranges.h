// SPDX-License-Identifier: Apache-2.0
//
// FunctionRanges: where functions begin and end, without names. Immutable, so any thread may read it.
//
// 8 bytes for each function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace flamed::symbolizer {

/// Addresses [start, end).
struct CodeRange {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  [[nodiscard]] bool holds(std::uint64_t address) const { return address >= start && address < end; }
  friend bool operator==(const CodeRange&, const CodeRange&) = default;
};

class FunctionRanges {
 public:
  /// A browser has half a million.
  static constexpr std::size_t kMost = 4'000'000;
  static constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

  FunctionRanges() = default;
  /// In any order. Of those with the same start the longest is kept. Those that begin 4 GiB or more after the first
  /// one, or are longer, are left out, and so are those beyond kMost.
  explicit FunctionRanges(std::vector<CodeRange> functions);

  [[nodiscard]] std::size_t size() const { return ranges_.size(); }
  /// In the order of their starts.
  [[nodiscard]] CodeRange operator[](std::size_t index) const;

  /// The function that has `address`.
  [[nodiscard]] std::optional<CodeRange> find(std::uint64_t address) const;
  /// Code at `address` may belong together up to here: the end of its function, or the start of the next one if it is
  /// in none.
  [[nodiscard]] std::uint64_t end_of(std::uint64_t address) const;

  /// Its memory, for budgets.
  [[nodiscard]] std::size_t bytes() const { return ranges_.capacity() * sizeof(Range); }

 private:
  friend class ValueCodec;
  struct Range {
    std::uint32_t start;  ///< from base_
    std::uint32_t size;
  };
  /// The number of functions that begin at or before `address`.
  [[nodiscard]] std::size_t begun_at(std::uint64_t address) const;

  std::uint64_t base_ = 0;
  std::vector<Range> ranges_;
};

}  // namespace flamed::symbolizer
