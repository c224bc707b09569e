// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/kept_names.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace flamed::symbolizer {

KeptNames::KeptNames(std::vector<Named> names) : names_(std::move(names)) {
  names_.shrink_to_fit();
  std::sort(names_.begin(), names_.end(), [](const Named& a, const Named& b) { return a.offset < b.offset; });
  bytes_ = sizeof(KeptNames) + names_.size() * sizeof(Named);
  // Most addresses of a function have equal chains, but not always the same copy.
  std::unordered_multimap<std::uint64_t, SymbolChainPtr> distinct;
  for (Named& named : names_) {
    std::uint64_t hash = 0;
    for (const Symbol& symbol : *named.chain) hash = (hash * 31 + symbol.hash) * 31 + symbol.line;
    const auto [first, last] = distinct.equal_range(hash);
    const auto same = std::find_if(first, last, [&](const auto& other) { return *other.second == *named.chain; });
    if (same != last) {
      named.chain = same->second;
    } else {
      bytes_ += memory_of(*named.chain);
      distinct.emplace(hash, named.chain);
    }
  }
}

SymbolChainPtr KeptNames::find(std::uint64_t offset) const {
  const auto found = std::lower_bound(names_.begin(), names_.end(), offset,
                                      [](const Named& named, std::uint64_t wanted) { return named.offset < wanted; });
  return found != names_.end() && found->offset == offset ? found->chain : nullptr;
}

}  // namespace flamed::symbolizer
