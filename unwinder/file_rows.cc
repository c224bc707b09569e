// SPDX-License-Identifier: Apache-2.0
#include "unwinder/file_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace flamed::unwinder {
namespace {

constexpr std::uint64_t kMaxSpan = std::uint64_t{1} << 32;

void append(std::vector<Row>& rows, std::uint64_t offset, RuleId rule) {
  if (!rows.empty() && rows.back().rule == rule) return;
  if (rows.empty() && rule == kNoneRule) return;
  rows.push_back(Row{.offset = static_cast<std::uint32_t>(offset), .rule = rule});
}

}  // namespace

Result<UnwindRows> by_file_offset(UnwindRows rows, std::span<const CodeSegment> segments) {
  std::vector<CodeSegment> by_offset(segments.begin(), segments.end());
  std::erase_if(by_offset, [](const CodeSegment& segment) { return segment.size == 0; });
  std::sort(by_offset.begin(), by_offset.end(),
            [](const CodeSegment& a, const CodeSegment& b) { return a.offset < b.offset; });

  UnwindRows result;
  result.rules = std::move(rows.rules);
  result.stats = rows.stats;
  if (by_offset.empty()) return result;
  result.base = by_offset.front().offset;
  result.rows.reserve(rows.rows.size() + by_offset.size());

  std::uint64_t end = result.base;
  for (const CodeSegment& segment : by_offset) {
    if (segment.offset < end) return Error("executable segments share bytes of the file");
    if (segment.offset != end) append(result.rows, end - result.base, kNoneRule);
    if (__builtin_add_overflow(segment.offset, segment.size, &end) || end - result.base >= kMaxSpan) {
      return Error("executable code spans more than " + std::to_string(kMaxSpan) + " bytes of the file");
    }
    const std::uint64_t address_end = segment.address + segment.size;
    if (address_end <= rows.base) continue;

    // The row of the segment's first byte, then those within the segment.
    const std::uint64_t first = std::max(segment.address, rows.base);
    const auto after = std::upper_bound(rows.rows.begin(), rows.rows.end(), first - rows.base,
                                        [](std::uint64_t offset, const Row& row) { return offset < row.offset; });
    const std::uint64_t shift = segment.offset - result.base;
    append(result.rows, first - segment.address + shift, after == rows.rows.begin() ? kNoneRule : (after - 1)->rule);
    for (auto row = after; row != rows.rows.end() && rows.base + row->offset < address_end; ++row) {
      append(result.rows, rows.base + row->offset - segment.address + shift, row->rule);
    }
  }
  append(result.rows, end - result.base, kNoneRule);
  return result;
}

}  // namespace flamed::unwinder
