// SPDX-License-Identifier: Apache-2.0
//
// JitRanges: the functions that a just-in-time compiler has logged, in its order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbolizer/model/symbol_table.h"

namespace flamed::symbolizer {

/// Code memory is reused: where ranges overlap, the last added one counts, and the rest of the others keeps its name
/// for older samples. Refers to the names until build() returns.
class JitRanges {
 public:
  /// The largest known programs have some 100,000 compiled functions at a time.
  static constexpr std::size_t kMaxRanges = 4'000'000;

  /// [start, start + size). False, and nothing is added, if the range is empty, wraps around or has no name, or if
  /// there are kMaxRanges already.
  bool add(std::uint64_t start, std::uint64_t size, std::string_view name);

  [[nodiscard]] std::size_t size() const { return ranges_.size(); }

  /// Fails if the names add up to more than `max_name_bytes`.
  [[nodiscard]] Result<SymbolTable> build(std::uint32_t max_name_bytes) &&;

 private:
  struct Range {
    std::uint64_t start;
    std::uint64_t end;
    const char* name;
    std::uint32_t name_bytes;
    std::uint32_t order;
  };
  std::vector<Range> ranges_;
};

}  // namespace flamed::symbolizer
