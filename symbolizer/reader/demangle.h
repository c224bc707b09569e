// SPDX-License-Identifier: Apache-2.0
//
// demangle: turns mangled symbol names back into source names. Pure; any thread.
#pragma once

#include <string_view>

#include "symbolizer/model/demangled_name.h"

namespace flamed::symbolizer {

/// C++ (Itanium ABI) and Rust (legacy and v0); see short_name.h for what `name` leaves out. Neither has return types,
/// nor Rust's hashes. Go's names are not mangled, but `name` has "[...]" for their type arguments. Compiler clones keep
/// their mark ("f [clone .cold]"), and so do stubs ("f@plt"). Other names, and those that fail to demangle within the
/// limits, are returned unchanged. Not sanitised: see clean_name().
DemangledName demangle(std::string_view name);

}  // namespace flamed::symbolizer
