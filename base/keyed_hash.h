// SPDX-License-Identifier: Apache-2.0
//
// Hashes of what processes choose themselves, such as names and addresses. Without the key nobody can choose values
// that collide, and so make everybody's samples wait for long searches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flamed {

/// From the system's source of randomness, another one each time; never 0.
std::uint64_t random_hash_key();

/// The one that this process has for everything without a key of its own.
std::uint64_t process_hash_key();

/// `hash` with one word more. Both halves of the product, one upon the other: every bit of it depends on all of both.
inline std::uint64_t hash_with(std::uint64_t hash, std::uint64_t word, std::uint64_t key) {
  __extension__ using Wide = unsigned __int128;
  const Wide wide = static_cast<Wide>(hash ^ word) * key;
  return static_cast<std::uint64_t>(wide) ^ static_cast<std::uint64_t>(wide >> 64);
}

/// Of a text, with this process's key.
std::uint64_t keyed_hash(std::string_view text);

/// For maps whose keys are texts that somebody else has chosen.
struct KeyedTextHash {
  std::size_t operator()(std::string_view text) const { return static_cast<std::size_t>(keyed_hash(text)); }
};

}  // namespace flamed
