// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/table_editions.h"

#include <algorithm>
#include <utility>

namespace flamed::symbolizer {

void TableEditions::add(std::shared_ptr<const MappingSet> maps, MonotonicTime now) {
  if (editions_.size() == kMost) editions_.erase(editions_.begin());
  editions_.push_back({next_++, now, std::move(maps)});
}

const MappingSet* TableEditions::find(std::uint16_t number) const {
  const auto found = std::find_if(editions_.rbegin(), editions_.rend(),
                                  [&](const Edition& edition) { return edition.number == number; });
  return found == editions_.rend() ? nullptr : found->maps.get();
}

void TableEditions::forget_replaced(MonotonicTime time) {
  while (editions_.size() > 1 && editions_[1].from <= time) editions_.erase(editions_.begin());
}

}  // namespace flamed::symbolizer
