// SPDX-License-Identifier: Apache-2.0
//
// Do symbolizer/dwarf's lines and inlined calls agree with libdw's? Asked are the address of each row of the line
// tables, a random place within the row, and the end of each sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "symbolizer/model/module_files.h"
#include "test/agreement/tally.h"

namespace flamed::agreement {

struct SourceTally {
  Tally lines;                ///< file and line of addresses
  Tally chains;               ///< of addresses in functions: their names, and file and line of each inlined call
  std::uint64_t inlined = 0;  ///< of these, with inlined calls
};

/// About `most` addresses of a module, spread evenly; 0: all. Nothing where there is no debug information.
void compare_sources(const std::string& path, const symbolizer::ModuleFiles& files, std::size_t most,
                     SourceTally& tally);

}  // namespace flamed::agreement
