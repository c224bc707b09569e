// SPDX-License-Identifier: Apache-2.0
//
// Frames that stand for no code. Pure; any thread.
#pragma once

#include "base/identity.h"
#include "symbolizer/model/symbol.h"

namespace flamed::symbolizer {

/// What is shown for a stack that its user may not see, or for the part of one that could not be walked. Null: the
/// frame is code.
SymbolChainPtr name_special(const Frame& frame);

}  // namespace flamed::symbolizer
