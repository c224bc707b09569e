// SPDX-License-Identifier: Apache-2.0
#include "store/keyed_hash.h"

#include <cstdint>
#include <set>

#include "store/id_index.h"
#include "test/catch.h"

namespace flamed::store {
namespace {

TEST_CASE("every bit of a word and of the order of words is in the hash") {
  const std::uint64_t key = random_hash_key();
  std::set<std::uint64_t> hashes;
  for (int bit = 0; bit < 64; ++bit) {
    hashes.insert(hash_with(hash_with(0, std::uint64_t{1} << bit, key), 5, key));
    hashes.insert(hash_with(hash_with(0, 5, key), std::uint64_t{1} << bit, key));
  }
  // 1 << 0 ... 1 << 63 before and after a 5, which is none of them.
  CHECK(hashes.size() == 128);
}

TEST_CASE("words that were chosen to collide without the key do not collide with it") {
  // What cancelled out when words were multiplied by a known number and combined: see the names of threads.
  constexpr std::uint64_t kKnown = 0x9e3779b97f4a7c15ULL;
  const std::uint64_t key = random_hash_key();
  std::set<std::uint64_t> places;
  for (std::uint64_t second = 1; second <= 10'000; ++second) {
    const std::uint64_t first = 42 ^ (second * kKnown);
    places.insert(hash_with(hash_with(mix(key), first, key), second, key) >> 32);
  }
  // Of 2^32 places: 10,000 that are chosen at random share one a hundred times a hundred runs.
  CHECK(places.size() > 9'990);
}

TEST_CASE("each process has a key of its own") { CHECK(random_hash_key() != random_hash_key()); }

}  // namespace
}  // namespace flamed::store
