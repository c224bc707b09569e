// SPDX-License-Identifier: Apache-2.0
#include "store/frame_table.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace flamed::store {

void FrameTable::see(std::uint32_t variant) {
  const FunctionTable::Variant& other = functions_.variant(variant);
  Seen& seen = seen_[other.function];
  if (seen.variant == 0) {
    seen = {variant + 1, other.file, variant, {}};
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
  const std::uint32_t found = own_ids_.find(hash, [&](std::uint32_t id) { return own_[id] == frame; });
  if (found != IdIndex::kNone) return static_cast<std::uint32_t>(seen_.size()) + found;
  const auto id = static_cast<std::uint32_t>(own_.size());
  own_.push_back(frame);
  static_cast<void>(own_ids_.make_room([&](std::uint32_t other) { return hash_of(own_[other]); }));
  own_ids_.insert(hash, id);
  return static_cast<std::uint32_t>(seen_.size()) + id;
}

std::vector<std::uint32_t> FrameTable::in_order(const std::vector<bool>& used) const {
  const auto base = static_cast<std::uint32_t>(seen_.size());
  std::vector<FunctionTable::Place> own;
  for (std::uint32_t i = 0; i < own_.size(); ++i) {
    if (used[base + i]) own.push_back({FunctionTable::beginning_of(own_[i].name), base + i});
  }
  const auto before = [&](const FunctionTable::Place& a, const FunctionTable::Place& b) {
    if (a.beginning != b.beginning) return a.beginning < b.beginning;
    const NamedFrame& x = (*this)[a.function];
    const NamedFrame& y = (*this)[b.function];
    if (FunctionTable::is_before(x, y)) return true;
    return !FunctionTable::is_before(y, x) && a.function < b.function;
  };
  std::sort(own.begin(), own.end(), before);
  std::vector<std::uint32_t> order;
  auto next = own.begin();
  for (const FunctionTable::Place& place : functions_.in_order()) {
    if (!used[place.function]) continue;
    for (; next != own.end() && before(*next, place); ++next) order.push_back(next->function);
    order.push_back(place.function);
  }
  for (; next != own.end(); ++next) order.push_back(next->function);
  return order;
}

FrameList FrameTable::list(std::span<const std::uint32_t> frames) && {
  FrameList list;
  list.reserve(frames.size());
  auto own = std::make_shared<std::deque<NamedFrame>>(std::move(own_));
  for (const std::uint32_t frame : frames) {
    if (frame >= seen_.size()) {
      list.share((*own)[frame - seen_.size()]);
      continue;
    }
    const Seen& seen = seen_[frame];
    if (seen.variant == 0) {
      list.share(functions_[frame]);
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
