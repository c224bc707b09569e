// SPDX-License-Identifier: Apache-2.0
#include "unwinder/file_rows.h"

#include <array>
#include <utility>
#include <vector>

#include "test/catch.h"

namespace flamed::unwinder {
namespace {

/// Rule 2 from 0x1000, rule 3 from 0x1800 to 0x3000, rule 2 from 0x3000 to 0x3800; base 0x1000.
UnwindRows sample() {
  UnwindRows rows;
  rows.base = 0x1000;
  rows.rules.resize(4);
  rows.rules[2].cfa = rows.rules[3].cfa = CfaKind::kSpOffset;
  rows.rules[2].cfa_offset = 8;
  rows.rules[3].cfa_offset = 16;
  rows.rows = {Row{0, RuleId{2}}, Row{0x800, RuleId{3}}, Row{0x2000, RuleId{2}}, Row{0x2800, kNoneRule}};
  return rows;
}

std::vector<std::pair<std::uint64_t, int>> all(const UnwindRows& rows) {
  std::vector<std::pair<std::uint64_t, int>> list;
  for (const Row& row : rows.rows) list.emplace_back(rows.base + row.offset, row.rule.value);
  return list;
}

using List = std::vector<std::pair<std::uint64_t, int>>;

TEST_CASE("One segment shifts its rows") {
  const CodeSegment segment{.address = 0x1000, .offset = 0x400, .size = 0x3000};
  const Result<UnwindRows> rows = by_file_offset(sample(), {&segment, 1});
  REQUIRE(rows.ok());
  CHECK(all(*rows) == List{{0x400, 2}, {0xc00, 3}, {0x2400, 2}, {0x2c00, 0}});
  CHECK(rows->find(0xbff).cfa_offset == 8);
  CHECK(rows->find(0xc00).cfa_offset == 16);
}

TEST_CASE("Rows are cut at the ends of segments and begin with the rule that holds there") {
  const std::array<CodeSegment, 2> segments{CodeSegment{.address = 0x1000, .offset = 0x1000, .size = 0xc00},
                                            CodeSegment{.address = 0x2800, .offset = 0x1e00, .size = 0x1000}};
  const Result<UnwindRows> rows = by_file_offset(sample(), segments);
  REQUIRE(rows.ok());
  CHECK(all(*rows) == List{{0x1000, 2}, {0x1800, 3}, {0x1c00, 0}, {0x1e00, 3}, {0x2600, 2}, {0x2e00, 0}});
}

TEST_CASE("Segments may be in another order in the file than in memory") {
  const std::array<CodeSegment, 2> segments{CodeSegment{.address = 0x1000, .offset = 0x9000, .size = 0x1000},
                                            CodeSegment{.address = 0x3000, .offset = 0x1000, .size = 0x1000}};
  const Result<UnwindRows> rows = by_file_offset(sample(), segments);
  REQUIRE(rows.ok());
  CHECK(all(*rows) == List{{0x1000, 2}, {0x1800, 0}, {0x9000, 2}, {0x9800, 3}, {0xa000, 0}});
}

TEST_CASE("A segment before the first row has no known rule") {
  const std::array<CodeSegment, 2> segments{CodeSegment{.address = 0x0, .offset = 0x0, .size = 0x800},
                                            CodeSegment{.address = 0x1000, .offset = 0x1000, .size = 0x800}};
  const Result<UnwindRows> rows = by_file_offset(sample(), segments);
  REQUIRE(rows.ok());
  CHECK(all(*rows) == List{{0x1000, 2}, {0x1800, 0}});
}

TEST_CASE("Segments that share bytes, or span over 4 GiB, are refused") {
  const std::array<CodeSegment, 2> shared{CodeSegment{.address = 0x1000, .offset = 0x1000, .size = 0x1000},
                                          CodeSegment{.address = 0x3000, .offset = 0x1800, .size = 0x1000}};
  CHECK_FALSE(by_file_offset(sample(), shared).ok());
  const std::array<CodeSegment, 2> spread{
      CodeSegment{.address = 0x1000, .offset = 0x0, .size = 0x1000},
      CodeSegment{.address = 0x3000, .offset = std::uint64_t{1} << 32, .size = 0x1000}};
  CHECK_FALSE(by_file_offset(sample(), spread).ok());
}

TEST_CASE("Without segments there are no rows") {
  const Result<UnwindRows> rows = by_file_offset(sample(), {});
  REQUIRE(rows.ok());
  CHECK(rows->rows.empty());
}

}  // namespace
}  // namespace flamed::unwinder
