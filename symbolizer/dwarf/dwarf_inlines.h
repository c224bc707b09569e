// SPDX-License-Identifier: Apache-2.0
//
// DwarfInlines: the functions of one unit, with inlined ones, at given addresses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "symbolizer/dwarf/dwarf_info.h"

namespace flamed::symbolizer {

/// A function with code of its own, or an inlined instance of one.
struct DwarfScope {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint64_t entry = 0;      ///< in .debug_info
  std::uint32_t outer = kNone;  ///< the scope that it was inlined into
  std::uint32_t call_line = 0;  ///< there
  std::uint64_t call_file = 0;  ///< there; see DwarfLines::path
  bool has_call_file = false;
  bool is_inlined = false;
};

struct DwarfInlines {
  std::vector<DwarfScope> scopes;
  std::vector<std::uint32_t> innermost;  ///< one for each address: index into `scopes`, or DwarfScope::kNone
};

/// Makes one pass over the unit's entries. `addresses` are sorted. Stops at damaged data or at the end of the budget,
/// with the result so far.
DwarfInlines read_dwarf_inlines(DwarfInfo& info, const DwarfUnit& unit, std::span<const std::uint64_t> addresses);

}  // namespace flamed::symbolizer
