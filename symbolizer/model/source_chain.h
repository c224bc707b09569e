// SPDX-License-Identifier: Apache-2.0
//
// SourceChain: what debug information says of one address.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flamed::symbolizer {

struct SourceFrame {
  std::string function;    ///< as the compiler spells it (mangled); empty: only the symbol table knows
  std::string file;        ///< source file; empty where not known
  std::uint32_t line = 0;  ///< of the address; of the call where the next one was inlined; 0 where not known
  bool inlined = false;    ///< into the one before it

  friend bool operator==(const SourceFrame&, const SourceFrame&) = default;
};

/// Outermost first. Empty: nothing is known.
using SourceChain = std::vector<SourceFrame>;

}  // namespace flamed::symbolizer
