// SPDX-License-Identifier: Apache-2.0
//
// Symbol: a name for an address, or the reason why there is none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/identity.h"

namespace flamed::symbolizer {

enum class SymbolKind : std::uint8_t { kKernel, kNative, kVdso, kJit, kUnknown };

struct Symbol {
  std::string name;    ///< demangled; "[unknown] (module+0x1a2b)" without one
  std::string module;  ///< file name of the module, the kernel module, or "[kernel]", "[vdso]", "[anon]"
  SymbolKind kind = SymbolKind::kUnknown;
  std::string reason;    ///< why there is no name; empty when there is one
  bool pending = false;  ///< the next time there may be one: what is asked for is on its way
};

/// The functions that one address stands for, outermost first. Never empty.
using SymbolChain = std::vector<Symbol>;
using SymbolChainPtr = std::shared_ptr<const SymbolChain>;

/// Names addresses. Any thread. Capabilities are added by decorating this interface.
class Symbolizer {
 public:
  virtual ~Symbolizer() = default;
  /// One chain for each frame, in order; never null.
  virtual std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) = 0;
};

}  // namespace flamed::symbolizer
