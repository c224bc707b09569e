// SPDX-License-Identifier: Apache-2.0
#include "base/keyed_hash.h"

#include <cstring>
#include <random>

namespace flamed {

std::uint64_t random_hash_key() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device() | 1;
}

std::uint64_t process_hash_key() {
  static const std::uint64_t key = random_hash_key();
  return key;
}

std::uint64_t keyed_hash(std::string_view text) {
  const std::uint64_t key = process_hash_key();
  std::uint64_t hash = hash_with(~key, text.size(), key);
  std::uint64_t word = 0;
  for (; text.size() >= sizeof(word); text.remove_prefix(sizeof(word))) {
    std::memcpy(&word, text.data(), sizeof(word));
    hash = hash_with(hash, word, key);
  }
  word = 0;
  if (!text.empty()) std::memcpy(&word, text.data(), text.size());
  return hash_with(hash, word, key);
}

}  // namespace flamed
