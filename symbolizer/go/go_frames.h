// SPDX-License-Identifier: Apache-2.0
//
// go_frames: how to get from Go's functions to their callers, from the runtime's own tables, in the form of a
// .debug_frame section. Go's linker writes the same from the same tables, but strip removes it, and it lacks the frame
// pointer. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "symbolizer/go/go_line_table.h"

namespace flamed::symbolizer {

/// For x86-64. Empty if it would be larger than `limit_bytes`.
std::vector<std::byte> go_frames(const GoLineTable& table, std::size_t limit_bytes);

}  // namespace flamed::symbolizer
