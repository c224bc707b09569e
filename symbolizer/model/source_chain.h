// SPDX-License-Identifier: Apache-2.0
//
// SourceChain: the debug information of one address.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flamed::symbolizer {

struct SourceFrame {
  std::string function;    ///< as the compiler spells it (mangled); empty: see the symbol table
  std::string file;        ///< source file; empty if not known
  std::uint32_t line = 0;  ///< of the address; of the call if the next one was inlined; 0 if not known
  bool inlined = false;    ///< into the frame before it

  friend bool operator==(const SourceFrame&, const SourceFrame&) = default;
};

/// Outermost first. Empty: not known.
using SourceChain = std::vector<SourceFrame>;

}  // namespace flamed::symbolizer
