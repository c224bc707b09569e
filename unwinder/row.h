// SPDX-License-Identifier: Apache-2.0
//
// Row: the rule from an offset up to the next row. UnwindRows: the rows of one file.
//
// This is the portable form, the result of reading a file. It is converted to the kernel program's form: 16 bits for
// the place within a 64 KiB page of the file and 16 bits for the rule.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "unwinder/rule.h"
#include "unwinder/rule_table.h"

namespace flamed::unwinder {

struct Row {
  std::uint32_t offset = 0;  ///< from UnwindRows::base
  RuleId rule;
};
static_assert(sizeof(Row) == 8);

/// Why a part of the unwind information was not used. Each is counted.
enum class Skipped : std::uint8_t {
  kCfaExpression,  ///< rows whose CFA is an expression that a Rule can't express, or an offset beyond 32 bits
  kFpExpression,   ///< likewise the frame pointer; only the frame pointer is lost (FpKind::kUnknown)
  kRaExpression,   ///< likewise the return address, or it is not described
  kSpRule,         ///< rows whose caller's sp is not the CFA
  kBadProgram,     ///< functions whose instructions are damaged; from the damage to the function's end nothing is known
  kBadCie,         ///< functions whose CIE can't be read; their code gets no rows
  kBadFde,         ///< functions whose own record can't be read; their code gets no rows
  kNotCode,        ///< functions outside all executable segments: left from code that the linker discarded
  kOverlap,        ///< functions that begin before the end of another one; the first one keeps its code
};
inline constexpr std::size_t kSkippedKinds = 9;

struct BuildStats {
  std::uint64_t functions = 0;            ///< FDEs with rows in the result
  std::uint64_t rows_before_merging = 0;  ///< without gaps
  std::array<std::uint64_t, kSkippedKinds> skipped{};
  /// The section's own structure is damaged: records after the damage are missing.
  bool cut_short = false;

  [[nodiscard]] std::uint64_t count(Skipped kind) const { return skipped[static_cast<std::size_t>(kind)]; }
};

/// Sorted by offset, without duplicates; adjacent rows differ in their rule. There is no rule before the first row; the
/// last row, if there is one, is a kNoneRule at the end of the last function.
struct UnwindRows {
  std::uint64_t base = 0;
  std::vector<Row> rows;
  std::vector<Rule> rules;  ///< by RuleId
  BuildStats stats;

  /// The rule at `address` (of the same kind as base).
  [[nodiscard]] const Rule& find(std::uint64_t address) const {
    static constexpr Rule kNothing{};
    if (address < base || rows.empty()) return kNothing;
    const auto after = std::upper_bound(rows.begin(), rows.end(), address - base,
                                        [](std::uint64_t offset, const Row& row) { return offset < row.offset; });
    return after == rows.begin() ? kNothing : rules[(after - 1)->rule.value];
  }

  /// Its memory.
  [[nodiscard]] std::size_t bytes() const { return rows.capacity() * sizeof(Row) + rules.capacity() * sizeof(Rule); }
};

}  // namespace flamed::unwinder
