// SPDX-License-Identifier: Apache-2.0
#include "base/keyed_hash.h"

#include <algorithm>
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

void KeyedDigest::add(std::span<const std::byte> bytes) {
  constexpr std::size_t kWord = sizeof(partial_);
  while (!bytes.empty()) {
    const std::size_t used = size_ % kWord;
    const std::size_t count = std::min(bytes.size(), kWord - used);
    std::memcpy(reinterpret_cast<std::byte*>(&partial_) + used, bytes.data(), count);
    size_ += count;
    bytes = bytes.subspan(count);
    if (size_ % kWord != 0) return;
    hash_ = hash_with(hash_, partial_, key_);
    for (; bytes.size() >= kWord; bytes = bytes.subspan(kWord), size_ += kWord) {
      std::memcpy(&partial_, bytes.data(), kWord);
      hash_ = hash_with(hash_, partial_, key_);
    }
    partial_ = 0;
  }
}

std::uint64_t keyed_hash(std::string_view text) {
  KeyedDigest digest(process_hash_key());
  digest.add(std::as_bytes(std::span(text)));
  return digest.value();
}

}  // namespace flamed
