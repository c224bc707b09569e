// SPDX-License-Identifier: Apache-2.0
//
// Symbol: a name for an address, or the reason why there is none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/identity.h"
#include "base/named_frame.h"

namespace flamed::symbolizer {

using SymbolKind = FrameKind;
using Symbol = NamedFrame;
using SymbolChain = InlineChain;
using SymbolChainPtr = std::shared_ptr<const SymbolChain>;

/// Names addresses. Any thread. Capabilities are added by decorating this interface.
class Symbolizer {
 public:
  virtual ~Symbolizer() = default;
  /// One chain for each frame, in order; never null.
  virtual std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) = 0;
  /// The same as far as nothing has to be read for it; null: it would have to be.
  virtual std::vector<SymbolChainPtr> known(std::span<const Frame> frames) {
    return std::vector<SymbolChainPtr>(frames.size());
  }
  /// Those of `modules` whose names have improved since they were last named, so that they should be named again.
  /// Reports each change once. Cheap enough for every query.
  virtual std::vector<ModuleId> renewed(std::span<const ModuleId> /*modules*/) { return {}; }
  /// As long as the number is the same, names of the modules have not changed since it was read, except those for which
  /// may_change() is true. Cheap enough for every query.
  virtual std::uint64_t edition(std::span<const ModuleId> /*modules*/) { return 0; }
};

}  // namespace flamed::symbolizer
