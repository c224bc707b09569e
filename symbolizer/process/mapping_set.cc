// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/mapping_set.h"

#include <algorithm>

namespace flamed::symbolizer {
namespace {

/// The first mapping that ends after `address`.
std::vector<Mapping>::const_iterator first_ending_after(const std::vector<Mapping>& mappings, std::uint64_t address) {
  return std::upper_bound(mappings.begin(), mappings.end(), address,
                          [](std::uint64_t at, const Mapping& mapping) { return at < mapping.end; });
}

}  // namespace

void MappingSet::insert(const Mapping& mapping) {
  if (mapping.end <= mapping.start) return;
  const auto first = first_ending_after(mappings_, mapping.start);
  if (first == mappings_.end() || first->start >= mapping.end) {  // no overlap, nearly always
    mappings_.insert(first, mapping);
    return;
  }
  auto last = first;
  std::vector<Mapping> replacement;
  if (first != mappings_.end() && first->start < mapping.start) {
    replacement.push_back(*first);
    replacement.back().end = mapping.start;
  }
  const std::size_t inserted = replacement.size();
  replacement.push_back(mapping);
  while (last != mappings_.end() && last->start < mapping.end) {
    if (last->contested || !last->continues(mapping)) replacement[inserted].contested = has_contested_ = true;
    if (last->end > mapping.end) {
      Mapping rest = *last;
      rest.file_offset += mapping.end - rest.start;
      rest.start = mapping.end;
      replacement.push_back(rest);
    }
    ++last;
  }
  const auto at = mappings_.erase(first, last);
  mappings_.insert(at, replacement.begin(), replacement.end());
}

void MappingSet::contest(const MappingSet& before) {
  has_contested_ |= before.has_contested_;
  for (Mapping& mapping : mappings_) {
    auto old = first_ending_after(before.mappings_, mapping.start);
    const bool was_empty = old == before.mappings_.end() || old->start >= mapping.end;
    if (was_empty && before.has_contested_) mapping.contested = true;
    for (; old != before.mappings_.end() && old->start < mapping.end; ++old) {
      if (old->contested || !old->continues(mapping)) mapping.contested = has_contested_ = true;
    }
  }
}

void MappingSet::replace_module(ModuleId module, ModuleId other) {
  for (Mapping& mapping : mappings_) {
    if (mapping.module == module) mapping.module = other;
  }
}

const Mapping* MappingSet::find(std::uint64_t address) const {
  const auto found = first_ending_after(mappings_, address);
  return found != mappings_.end() && found->start <= address ? &*found : nullptr;
}

}  // namespace flamed::symbolizer
