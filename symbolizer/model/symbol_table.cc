// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/symbol_table.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {

std::optional<SymbolTable::Found> SymbolTable::find(std::uint64_t address) const {
  if (names_.empty() || address < base_) return std::nullopt;
  const std::uint64_t relative = address - base_;
  std::size_t after = 0;
  if (!wide_.empty()) {
    after = static_cast<std::size_t>(std::upper_bound(wide_.begin(), wide_.end(), relative) - wide_.begin());
  } else {
    if (relative > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    after = static_cast<std::size_t>(
        std::upper_bound(narrow_.begin(), narrow_.end(), static_cast<std::uint32_t>(relative)) - narrow_.begin());
  }
  if (after == 0) return std::nullopt;
  const std::size_t range = after - 1;
  if (names_[range] == kNoName) return std::nullopt;

  std::uint64_t function_start = range_start(range);
  const auto resumed = std::lower_bound(resumed_.begin(), resumed_.end(), range,
                                        [](const Resumed& r, std::size_t wanted) { return r.range < wanted; });
  if (resumed != resumed_.end() && resumed->range == range) function_start = resumed->function_start;
  // The last range has no name.
  return Found{std::string_view(blob_.c_str() + names_[range]), address - function_start,
               range_start(range + 1) - address};
}

std::size_t SymbolTable::bytes() const {
  return sizeof(*this) + narrow_.capacity() * sizeof(narrow_[0]) + wide_.capacity() * sizeof(wide_[0]) +
         names_.capacity() * sizeof(names_[0]) + resumed_.capacity() * sizeof(resumed_[0]) + blob_.capacity();
}

void SymbolTable::Builder::add(std::uint64_t address, std::uint64_t size, std::uint64_t limit, SymbolBinding binding,
                               std::string_view name) {
  // Names are stored with a NUL at their end; valid names have no NUL.
  name = name.substr(0, std::min(name.find('\0'), kMaxNameBytes));
  if (name.empty() || address >= limit) return;
  const std::uint64_t end = size > limit - address ? limit : address + size;
  symbols_.push_back({address, end, limit, name, binding});
}

/// Which of two names for the same address to show. A total order, so that the result does not depend on the file's
/// order.
bool SymbolTable::Builder::better_name(const Raw& a, const Raw& b) {
  const auto underscores = [](std::string_view name) { return std::min(name.find_first_not_of('_'), name.size()); };
  return std::make_tuple(a.binding, underscores(a.name) != 0, a.name.size(), a.name) <
         std::make_tuple(b.binding, underscores(b.name) != 0, b.name.size(), b.name);
}

void SymbolTable::Builder::merge_aliases() {
  std::sort(symbols_.begin(), symbols_.end(), [](const Raw& a, const Raw& b) {
    if (a.start != b.start) return a.start < b.start;
    // A symbol with a size describes a function better than a label at its first byte.
    const bool a_unsized = a.end == a.start;
    const bool b_unsized = b.end == b.start;
    if (a_unsized != b_unsized) return b_unsized;
    return better_name(a, b);
  });
  std::size_t kept = 0;
  for (const Raw& symbol : symbols_) {
    if (kept != 0 && symbols_[kept - 1].start == symbol.start) {
      Raw& first = symbols_[kept - 1];
      first.end = std::max(first.end, symbol.end);
      continue;
    }
    symbols_[kept++] = symbol;
  }
  symbols_.resize(kept);
}

void SymbolTable::Builder::give_sizes() {
  std::uint64_t covered_to = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    Raw symbol = symbols_[i];
    if (symbol.end == symbol.start) {
      if (symbol.start < covered_to) continue;
      symbol.end = i + 1 < symbols_.size() ? std::min(symbols_[i + 1].start, symbol.limit) : symbol.limit;
    }
    covered_to = std::max(covered_to, symbol.end);
    symbols_[kept++] = symbol;
  }
  symbols_.resize(kept);
}

/// Flattens nested functions into ranges without overlaps: sweeps over the starts in order, with the open functions on
/// a stack, and names each range after the innermost one (which started last).
std::vector<SymbolTable::Builder::Range> SymbolTable::Builder::flatten() const {
  std::vector<Range> ranges;
  ranges.reserve(symbols_.size() + 1);
  std::vector<std::size_t> open;
  const auto begin_range = [&](std::uint64_t start, std::size_t symbol) {
    if (!ranges.empty() && ranges.back().start == start) {
      ranges.back().symbol = symbol;
    } else {
      ranges.push_back({start, symbol});
    }
  };
  const auto close_until = [&](std::uint64_t position) {
    while (!open.empty() && symbols_[open.back()].end <= position) {
      const std::uint64_t end = symbols_[open.back()].end;
      while (!open.empty() && symbols_[open.back()].end <= end) open.pop_back();
      begin_range(end, open.empty() ? kGap : open.back());
    }
  };
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    close_until(symbols_[i].start);
    begin_range(symbols_[i].start, i);
    open.push_back(i);
  }
  close_until(std::numeric_limits<std::uint64_t>::max());
  return ranges;
}

/// Adjacent ranges of the same name are merged: a function and the padding symbol before it, two gaps.
void SymbolTable::Builder::merge_same_names(std::vector<Range>& ranges) const {
  const auto same_name = [&](const Range& a, const Range& b) {
    if (a.symbol == kGap || b.symbol == kGap) return a.symbol == b.symbol;
    return a.symbol == b.symbol || symbols_[a.symbol].name == symbols_[b.symbol].name;
  };
  ranges.erase(std::unique(ranges.begin(), ranges.end(), same_name), ranges.end());
}

Result<SymbolTable> SymbolTable::Builder::build() && {
  merge_aliases();
  give_sizes();
  std::vector<Range> ranges = flatten();
  if (ranges.empty()) return SymbolTable();
  if (ranges.size() > std::numeric_limits<std::uint32_t>::max()) return Error("too many symbols");
  merge_same_names(ranges);

  std::size_t name_bytes = 1;
  for (const Range& range : ranges) {
    if (range.symbol != kGap) name_bytes += symbols_[range.symbol].name.size() + 1;
    if (name_bytes > max_name_bytes_) {
      return Error("symbol names add up to more than the limit of " + std::to_string(max_name_bytes_) + " bytes");
    }
  }
  return fill(ranges, name_bytes);
}

SymbolTable SymbolTable::Builder::fill(const std::vector<Range>& ranges, std::size_t name_bytes) const {
  SymbolTable table;
  table.base_ = ranges.front().start;
  table.blob_.reserve(name_bytes);
  table.blob_.push_back('\0');
  table.names_.reserve(ranges.size());
  const bool wide = ranges.back().start - table.base_ > std::numeric_limits<std::uint32_t>::max();
  (wide ? table.wide_.reserve(ranges.size()) : table.narrow_.reserve(ranges.size()));
  std::vector<std::uint32_t> name_of_symbol(symbols_.size(), kNoName);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    const std::uint64_t relative = range.start - table.base_;
    if (wide) {
      table.wide_.push_back(relative);
    } else {
      table.narrow_.push_back(static_cast<std::uint32_t>(relative));
    }
    if (range.symbol == kGap) {
      table.names_.push_back(kNoName);
      continue;
    }
    const Raw& symbol = symbols_[range.symbol];
    if (symbol.start != range.start) table.resumed_.push_back({static_cast<std::uint32_t>(i), symbol.start});
    std::uint32_t& name = name_of_symbol[range.symbol];
    if (name == kNoName) {
      name = static_cast<std::uint32_t>(table.blob_.size());
      table.blob_ += symbol.name;
      table.blob_.push_back('\0');
    }
    table.names_.push_back(name);
    ++table.named_ranges_;
  }
  return table;
}

}  // namespace flamed::symbolizer
