// SPDX-License-Identifier: Apache-2.0
#include "store/index/frame_table.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

namespace flamed::store {

FrameTable::~FrameTable() {
  for (const Frame& frame : frames_) {
    if (!frame.is_own()) number_of_[frame.function] = 0;
  }
}

void FrameTable::see(std::uint32_t variant) {
  const FunctionTable::Variant& other = functions_.variant(variant);
  Frame& seen = frames_[of(other.function)];
  if (seen.variant == 0) {
    seen = {other.function, variant + 1, other.file, variant, {}};
    return;
  }
  if (seen.variant == variant + 1) return;
  const FunctionTable::Variant& first = functions_.variant(seen.variant - 1);
  if (first.full_name != other.full_name) seen.differences.full_name = true;
  if (first.build_id != other.build_id) seen.differences.build_id = true;
  if (seen.file == 0) {
    seen.file = other.file;
    seen.file_of = variant;
  }
  if (first.line != other.line || seen.file != other.file) seen.differences.line = true;
}

std::uint32_t FrameTable::intern(const NamedFrame& frame) {
  const auto hash_of = [](const NamedFrame& of) { return mix(flamed::hash_of(of.name, of.module)); };
  const std::uint64_t hash = hash_of(frame);
  const std::uint32_t found = own_ids_.find(hash, [&](std::uint32_t id) { return (*this)[id] == frame; });
  if (found != IdIndex::kNone) return found;
  const auto id = static_cast<std::uint32_t>(frames_.size());
  frames_.push_back({kNone, static_cast<std::uint32_t>(own_.size()), 0, 0, {}});
  own_.push_back(frame);
  static_cast<void>(own_ids_.make_room([&](std::uint32_t other) { return hash_of((*this)[other]); }));
  own_ids_.insert(hash, id);
  return id;
}

std::vector<std::uint32_t> FrameTable::in_order(const std::vector<bool>& used) const {
  struct Own {
    FunctionTable::Beginning beginning;
    std::uint32_t frame;
  };
  const auto is_before = [&](const Own& a, const FunctionTable::Beginning& beginning, const NamedFrame& b) {
    return a.beginning != beginning ? a.beginning < beginning : FunctionTable::is_before((*this)[a.frame], b);
  };
  const std::span<const FunctionTable::Place> functions = functions_.in_order();
  std::vector<std::uint64_t> has(functions.size() / 64 + 1);  // by index of the function
  std::vector<Own> own;
  std::size_t count = 0;
  for (std::uint32_t frame = 0; frame < frames_.size(); ++frame) {
    if (!used[frame]) continue;
    ++count;
    if (frames_[frame].is_own()) {
      own.push_back({FunctionTable::beginning_of((*this)[frame].name), frame});
    } else {
      const std::uint32_t place = functions_.place_of(frames_[frame].function);
      has[place / 64] |= std::uint64_t{1} << (place % 64);
    }
  }
  std::stable_sort(own.begin(), own.end(),
                   [&](const Own& a, const Own& b) { return is_before(a, b.beginning, (*this)[b.frame]); });
  std::vector<std::uint32_t> order;
  order.reserve(count);
  auto next = own.begin();
  for (std::size_t word = 0; word < has.size(); ++word) {
    for (std::uint64_t bits = has[word]; bits != 0; bits &= bits - 1) {
      const FunctionTable::Place& place = functions[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
      for (; next != own.end() && is_before(*next, place.beginning, functions_[place.function]); ++next) {
        order.push_back(next->frame);
      }
      order.push_back(number_of_[place.function] - 1);
    }
  }
  for (; next != own.end(); ++next) order.push_back(next->frame);
  return order;
}

FrameList FrameTable::list(std::span<const std::uint32_t> frames) && {
  FrameList list;
  list.reserve(frames.size());
  auto own = std::make_shared<std::deque<NamedFrame>>(std::move(own_));
  for (const std::uint32_t frame : frames) {
    const Frame& seen = frames_[frame];
    if (seen.is_own()) {
      list.share((*own)[seen.variant]);
      continue;
    }
    if (seen.variant == 0) {
      list.share(functions_[seen.function]);
      continue;
    }
    const NamedFrame& common = functions_.common(seen.variant - 1, seen.differences);
    if (seen.file_of == seen.variant - 1) {
      list.share(common);
      continue;
    }
    NamedFrame& with_file = own->emplace_back(common);
    with_file.file = functions_.frame(seen.file_of).file;
    list.share(with_file);
  }
  list.keep(functions_.owner());
  list.keep(std::move(own));
  return list;
}

}  // namespace flamed::store
