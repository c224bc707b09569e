// SPDX-License-Identifier: Apache-2.0
//
// Row: from here on, up to the next row, this rule holds. UnwindRows: the rows of one file.
//
// This is the portable form that leaves the reader of a file. The kernel program's form is made from it: 16 bits for
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

/// Why something in the unwind information came to nothing. Each is counted.
enum class Skipped : std::uint8_t {
  kCfaExpression,  ///< rows whose CFA is an expression that a Rule can't express, or an offset beyond 32 bits
  kFpExpression,   ///< rows whose frame pointer is; only the frame pointer is lost (FpKind::kUnknown)
  kRaExpression,   ///< rows whose return address is, or isn't described
  kSpRule,         ///< rows whose caller's sp is not the CFA
  kBadProgram,     ///< functions whose instructions are damaged; from the damage to the function's end nothing is known
  kBadCie,         ///< functions whose CIE can't be read; their code gets no rows
  kBadFde,         ///< functions whose own record can't be read; their code gets no rows
  kNotCode,        ///< functions outside all executable segments: what the linker discarded leaves such records behind
  kOverlap,        ///< functions that begin before the end of another one; the one that begins first keeps its code
};
inline constexpr std::size_t kSkippedKinds = 9;

struct BuildStats {
  std::uint64_t functions = 0;            ///< FDEs whose rows are in
  std::uint64_t rows_before_merging = 0;  ///< without gaps
  std::array<std::uint64_t, kSkippedKinds> skipped{};
  /// The section's own structure is damaged: what follows the damage is missing.
  bool cut_short = false;

  [[nodiscard]] std::uint64_t count(Skipped kind) const { return skipped[static_cast<std::size_t>(kind)]; }
};

/// Sorted by offset, no two with the same one; neighbours differ in their rule. Before the first row nothing is known;
/// the last row, where there is one, is a kNoneRule at the end of the last function.
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

  /// Memory held.
  [[nodiscard]] std::size_t bytes() const { return rows.capacity() * sizeof(Row) + rules.capacity() * sizeof(Rule); }
};

}  // namespace flamed::unwinder
