// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/function_ranges.h"

#include <algorithm>
#include <tuple>

namespace flamed::symbolizer {

FunctionRanges::FunctionRanges(std::vector<CodeRange> functions) {
  constexpr std::uint64_t kWidest = std::numeric_limits<std::uint32_t>::max();
  std::erase_if(functions, [](const CodeRange& function) {
    return function.end <= function.start || function.end - function.start > kWidest;
  });
  std::sort(functions.begin(), functions.end(),
            [](const CodeRange& a, const CodeRange& b) { return std::tie(a.start, b.end) < std::tie(b.start, a.end); });
  const auto last = std::unique(functions.begin(), functions.end(),
                                [](const CodeRange& a, const CodeRange& b) { return a.start == b.start; });
  functions.erase(last, functions.end());
  if (functions.empty()) return;
  base_ = functions.front().start;
  ranges_.reserve(std::min(functions.size(), kMost));
  for (const auto& [start, end] : functions) {
    if (start - base_ > kWidest || ranges_.size() == kMost) break;
    ranges_.push_back({static_cast<std::uint32_t>(start - base_), static_cast<std::uint32_t>(end - start)});
  }
}

CodeRange FunctionRanges::operator[](std::size_t index) const {
  const std::uint64_t start = base_ + ranges_[index].start;
  return {start, start + ranges_[index].size};
}

std::size_t FunctionRanges::begun_at(std::uint64_t address) const {
  if (address < base_) return 0;
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address - base_,
                                      [](std::uint64_t wanted, const Range& range) { return wanted < range.start; });
  return static_cast<std::size_t>(after - ranges_.begin());
}

std::optional<CodeRange> FunctionRanges::find(std::uint64_t address) const {
  const std::size_t begun = begun_at(address);
  if (begun == 0) return std::nullopt;
  const CodeRange function = (*this)[begun - 1];
  return function.holds(address) ? std::optional(function) : std::nullopt;
}

std::uint64_t FunctionRanges::end_of(std::uint64_t address) const {
  if (const std::optional<CodeRange> function = find(address)) return function->end;
  const std::size_t next = begun_at(address);
  return next < size() ? (*this)[next].start : kNoEnd;
}

}  // namespace flamed::symbolizer
