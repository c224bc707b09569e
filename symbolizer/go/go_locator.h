// SPDX-License-Identifier: Apache-2.0
//
// locate_go: source lines of Go code, from the tables that the runtime itself uses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "symbolizer/model/source_chain.h"

namespace flamed::symbolizer {

/// One chain for each *file offset* in the module `fd`, in order; empty for C code in a Go program. nullopt: not a Go
/// program, or no usable tables. Any thread.
std::optional<std::vector<SourceChain>> locate_go(int fd, std::span<const std::uint64_t> offsets);

}  // namespace flamed::symbolizer
