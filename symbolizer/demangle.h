// SPDX-License-Identifier: Apache-2.0
//
// demangle: turns what a compiler wrote into a symbol table back into what a person wrote. Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "symbolizer/demangled_name.h"

namespace flamed::symbolizer {

/// Longer names are shown as they are.
inline constexpr std::size_t kMaxMangledBytes = 4096;
/// A name that demangles to more is shown mangled: back references make a name of 100 bytes stand for gigabytes.
inline constexpr std::size_t kMaxDemangledBytes = 64 * 1024;

/// C++ (Itanium ABI) and Rust (legacy and v0); see short_name.h for what `name` leaves out. Neither has return types,
/// nor Rust's hashes. Go's names are not mangled, but `name` has "[...]" for their type arguments. Compiler clones keep
/// their mark ("f [clone .cold]"), and so do stubs ("f@plt"). Anything else, and whatever fails to demangle within the
/// limits, comes back unchanged. Not sanitised: see clean_name().
DemangledName demangle(std::string_view name);

}  // namespace flamed::symbolizer
