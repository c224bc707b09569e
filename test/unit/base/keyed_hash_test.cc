// SPDX-License-Identifier: Apache-2.0
#include "base/keyed_hash.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <unordered_set>

#include "test/catch.h"

namespace flamed {
namespace {

TEST_CASE("every bit of a word and the order of words change the hash") {
  const std::uint64_t key = random_hash_key();
  std::set<std::uint64_t> hashes;
  for (int bit = 0; bit < 64; ++bit) {
    hashes.insert(hash_with(hash_with(0, std::uint64_t{1} << bit, key), 5, key));
    hashes.insert(hash_with(hash_with(0, 5, key), std::uint64_t{1} << bit, key));
  }
  // 1 << 0 ... 1 << 63 before and after a 5, which is not among them.
  CHECK(hashes.size() == 128);
}

TEST_CASE("words that collide without the key do not collide with it") {
  // Such words cancelled out when they were multiplied by a known number and combined. Names of threads are such words.
  constexpr std::uint64_t kKnown = 0x9e3779b97f4a7c15ULL;
  const std::uint64_t key = random_hash_key();
  std::set<std::uint64_t> places;
  for (std::uint64_t second = 1; second <= 10'000; ++second) {
    const std::uint64_t first = 42 ^ (second * kKnown);
    places.insert(hash_with(hash_with(~key, first, key), second, key) >> 32);
  }
  // Among 2^32 places, 10,000 random ones collide about once in a hundred runs.
  CHECK(places.size() > 9'990);
}

TEST_CASE("texts have different hashes, whatever bytes they end in") {
  std::set<std::uint64_t> hashes;
  std::string text;
  for (int size = 0; size < 100; ++size) {
    hashes.insert(keyed_hash(text));
    for (const char end : {'x', 'y'}) hashes.insert(keyed_hash(text + end));
    text += '\0';
  }
  CHECK(hashes.size() == 300);
  CHECK(keyed_hash("the same") == keyed_hash(std::string("the ") + "same"));
}

TEST_CASE("the bits of a text's hash are spread evenly") {
  constexpr int kTexts = 100'000;
  std::unordered_set<std::uint64_t> low;
  std::unordered_set<std::uint64_t> high;
  for (int i = 0; i < kTexts; ++i) {
    const std::uint64_t hash = keyed_hash("name_" + std::to_string(i));
    low.insert(hash % (1U << 24));
    high.insert(hash >> 40);
  }
  // Of 2^24 places, 100,000 random ones share 298 times on average; 500 are 12 standard deviations away.
  CHECK(low.size() > kTexts - 500);
  CHECK(high.size() > kTexts - 500);
}

TEST_CASE("a digest depends on every byte, their number and the key, and not on how they arrive") {
  std::string text(100, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i);
  const auto bytes = std::as_bytes(std::span(text));
  const auto digest = [&](std::size_t first, std::size_t second, std::uint64_t key) {
    KeyedDigest made(key);
    made.add(bytes.first(first));
    made.add(bytes.subspan(first, second - first));
    made.add(bytes.subspan(second));
    return made.value();
  };
  const std::uint64_t key = random_hash_key();
  const std::uint64_t whole = digest(0, 0, key);
  for (std::size_t first = 0; first < 20; ++first) {
    for (std::size_t second = first; second < first + 20; ++second) CHECK(digest(first, second, key) == whole);
  }
  CHECK(digest(0, 0, random_hash_key()) != whole);
  std::set<std::uint64_t> others{whole};
  for (char& byte : text) {
    byte ^= 1;
    others.insert(digest(3, 50, key));
    byte ^= 1;
  }
  for (std::size_t size = 0; size < text.size(); ++size) {
    KeyedDigest shorter(key);
    shorter.add(bytes.first(size));
    others.insert(shorter.value());
  }
  CHECK(others.size() == 201);
}

TEST_CASE("each process has a key of its own") { CHECK(random_hash_key() != random_hash_key()); }

}  // namespace
}  // namespace flamed
