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

enum class SymbolKind : std::uint8_t { kKernel, kNative, kGo, kVdso, kJit, kUnknown };

struct Symbol {
  std::string name;    ///< demangled and shortened, see demangle.h; "[unknown] (module+0x1a2b)" without one
  std::string module;  ///< file name of the module, the kernel module, or "[kernel]", "[vdso]", "[anon]"
  SymbolKind kind = SymbolKind::kUnknown;
  std::string reason;    ///< why there is no name; empty when there is one
  bool pending = false;  ///< the next time there may be one: what is asked for is on its way

  std::string full_name{};  ///< with template arguments and parameters; empty where that is `name`
  std::string build_id{};   ///< of the module, in hex; may be empty
  std::string file{};       ///< source file as the compiler named it; empty where not known
  std::uint32_t line = 0;   ///< in `file`: of the address, or of the call for a function that others were inlined into
  bool inlined = false;     ///< has no code of its own: the compiler put it into the function before it in the chain
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
  /// Those of `modules` of which more is known by now than when they were last named, so that what was answered for
  /// them is worth asking for again. Tells each change once. Cheap enough for every query.
  virtual std::vector<ModuleId> renewed(std::span<const ModuleId> /*modules*/) { return {}; }
};

}  // namespace flamed::symbolizer
