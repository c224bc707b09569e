// SPDX-License-Identifier: Apache-2.0
//
// A profile as folded stacks, the text that flamegraph.pl and its relatives read. Pure; any thread.
#pragma once

#include <string>

#include "store/model/profile.h"

namespace flamed::api {

/// One line "outermost;...;innermost count" for each stack, in byte order, each stack once. The profile's root is not
/// part of a stack, except where it is all of it. In names `;` becomes `:`, control characters become `_`, what is not
/// UTF-8 becomes U+FFFD, and an empty name becomes [unnamed]. Counts add up to the profile's samples.
/// Of a profile without samples there are its warnings, "# ..." each, which no reader takes for a stack.
std::string render_folded(const store::Profile& profile);

}  // namespace flamed::api
