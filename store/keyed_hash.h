// SPDX-License-Identifier: Apache-2.0
//
// Hashes of what processes choose themselves, such as their names and addresses. Without the key nobody can choose
// values that collide, and so make everybody's samples wait for long searches.
#pragma once

#include <cstdint>

namespace flamed::store {

/// Of this process, from the system's source of randomness; never 0.
std::uint64_t random_hash_key();

/// `hash` with one word more. Both halves of the product, one upon the other: every bit of it depends on all of both.
inline std::uint64_t hash_with(std::uint64_t hash, std::uint64_t word, std::uint64_t key) {
  __extension__ using Wide = unsigned __int128;
  const Wide wide = static_cast<Wide>(hash ^ word) * key;
  return static_cast<std::uint64_t>(wide) ^ static_cast<std::uint64_t>(wide >> 64);
}

}  // namespace flamed::store
