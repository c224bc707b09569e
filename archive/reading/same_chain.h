// SPDX-License-Identifier: Apache-2.0
//
// For tables of names: chains that say the same are one. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/named_frame.h"
#include "store/ring/call_tree.h"

namespace flamed::archive {

struct HashOfChain {
  std::size_t operator()(const std::shared_ptr<const InlineChain>& chain) const {
    std::uint64_t hash = chain->size();
    for (const NamedFrame& frame : *chain) hash = store::mix(hash ^ frame.hash ^ std::uint64_t{frame.line} << 32);
    return hash;
  }
};

struct SameChain {
  bool operator()(const std::shared_ptr<const InlineChain>& a, const std::shared_ptr<const InlineChain>& b) const {
    return a == b || *a == *b;
  }
};

}  // namespace flamed::archive
