// SPDX-License-Identifier: Apache-2.0
//
// A profile as folded stacks, the text that flamegraph.pl and its relatives read. Pure; any thread.
#pragma once

#include <string>

#include "store/model/profile.h"

namespace flamed::api {

/// One line "outermost;...;innermost count" for each stack, in byte order, each stack once. The profile's root is not
/// part of a stack, unless it is the whole stack. Names are folded_name()s. Counts add up to the profile's samples. A
/// profile without samples has its warnings instead, "# ..." each, which no reader takes for a stack.
std::string render_folded(const store::Profile& profile);

}  // namespace flamed::api
