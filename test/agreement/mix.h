// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace flamed::agreement {

/// Numbers that look random and are the same in each run (the last steps of splitmix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace flamed::agreement
