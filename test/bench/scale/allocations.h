// SPDX-License-Identifier: Apache-2.0
//
// The number of the program's allocations: a program that links allocations.cc counts each `new`. For single-threaded
// programs.
#pragma once

#include <cstdint>

namespace flamed::bench {

[[nodiscard]] std::uint64_t allocations();

}  // namespace flamed::bench
