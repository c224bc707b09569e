// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/special_frames.h"

namespace flamed::symbolizer {

SymbolChainPtr name_special(const Frame& frame) {
  if (frame.module == kHiddenModule) {
    return share({Symbol{"[not shown: not dumpable]", "[not shown]", SymbolKind::kUnknown,
                         "the process may not be inspected by its own user (not dumpable)"}});
  }
  if (frame.module == kTruncatedModule) {
    return share({Symbol{"[truncated]", "[truncated]", SymbolKind::kUnknown, "the stack could not be walked further"}});
  }
  return nullptr;
}

}  // namespace flamed::symbolizer
