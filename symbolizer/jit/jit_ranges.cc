// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/jit/jit_ranges.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();

}  // namespace

bool JitRanges::add(std::uint64_t start, std::uint64_t size, std::string_view name) {
  name = name.substr(0, std::min(name.find('\0'), kMaxNameBytes));
  if (size == 0 || size > kEnd - start || name.empty() || ranges_.size() >= kMaxRanges) return false;
  ranges_.push_back({start, start + size, name.data(), static_cast<std::uint32_t>(name.size()),
                     static_cast<std::uint32_t>(ranges_.size())});
  return true;
}

Result<SymbolTable> JitRanges::build(std::uint32_t max_name_bytes) && {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return std::make_tuple(a.start, a.order) < std::make_tuple(b.start, b.order);
  });
  SymbolTable::Builder builder(max_name_bytes);

  // Sweeps over the starts and ends in order of address, with the open ranges in a heap, the last added one on top.
  // Each step opens a range or reaches the end of one.
  std::vector<const Range*> open;
  const auto older = [](const Range* a, const Range* b) { return a->order < b->order; };
  const Range* piece_of = nullptr;
  std::uint64_t piece_start = 0;
  const auto begin_piece = [&](const Range* range, std::uint64_t at) {
    if (range == piece_of) return;
    if (piece_of != nullptr) {
      builder.add(piece_start, at - piece_start, kEnd, SymbolBinding::kGlobal, {piece_of->name, piece_of->name_bytes});
    }
    piece_of = range;
    piece_start = at;
  };
  auto next = ranges_.begin();
  std::uint64_t at = 0;
  while (next != ranges_.end() || !open.empty()) {
    if (open.empty()) at = next->start;
    for (; next != ranges_.end() && next->start <= at; ++next) {
      open.push_back(&*next);
      std::push_heap(open.begin(), open.end(), older);
    }
    while (!open.empty() && open.front()->end <= at) {
      std::pop_heap(open.begin(), open.end(), older);
      open.pop_back();
    }
    begin_piece(open.empty() ? nullptr : open.front(), at);
    if (open.empty()) continue;
    at = open.front()->end;
    if (next != ranges_.end()) at = std::min(at, next->start);
  }
  return std::move(builder).build();
}

}  // namespace flamed::symbolizer
