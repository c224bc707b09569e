// SPDX-License-Identifier: Apache-2.0
//
// V8's tables of source positions (src/codegen/source-position-table.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flamed::runtimes {

struct V8Position {
  std::uint32_t instruction = 0;  ///< from this one on, in bytes ...
  std::uint32_t source = 0;       ///< ... the code is of this character of the script
};

/// Ascending by `instruction`. At most `most`. Any bytes are a table.
std::vector<V8Position> read_v8_positions(std::span<const std::byte> bytes, std::size_t most);

}  // namespace flamed::runtimes
