// SPDX-License-Identifier: Apache-2.0
//
// How often the program has asked for memory: whoever links allocations.cc counts each `new`. For programs of one
// thread.
#pragma once

#include <cstdint>

namespace flamed::bench {

[[nodiscard]] std::uint64_t allocations();

}  // namespace flamed::bench
