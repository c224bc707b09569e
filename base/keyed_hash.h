// SPDX-License-Identifier: Apache-2.0
//
// Hashes of values that processes choose, such as names and addresses. Nobody can choose colliding values without the
// key, and so slow down everybody's look-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace flamed {

/// From the system's source of randomness, a new one each time; never 0.
std::uint64_t random_hash_key();

/// The key of this process, for everything without a key of its own.
std::uint64_t process_hash_key();

/// `hash` with one more word. The xor of both halves of the product: every bit depends on all bits of both factors.
inline std::uint64_t hash_with(std::uint64_t hash, std::uint64_t word, std::uint64_t key) {
  __extension__ using Wide = unsigned __int128;
  const Wide wide = static_cast<Wide>(hash ^ word) * key;
  return static_cast<std::uint64_t>(wide) ^ static_cast<std::uint64_t>(wide >> 64);
}

/// A hash of bytes that arrive in parts. The parts' borders don't matter.
class KeyedDigest {
 public:
  explicit KeyedDigest(std::uint64_t key) : key_(key), hash_(~key) {}

  void add(std::span<const std::byte> bytes);
  /// Of all bytes so far, and their number.
  [[nodiscard]] std::uint64_t value() const { return hash_with(hash_with(hash_, partial_, key_), size_, key_); }

 private:
  std::uint64_t key_;
  std::uint64_t hash_;
  std::uint64_t size_ = 0;
  std::uint64_t partial_ = 0;  ///< the last size_ % 8 bytes
};

/// Of a text, with this process's key.
std::uint64_t keyed_hash(std::string_view text);

/// For maps whose keys are untrusted texts.
struct KeyedTextHash {
  std::size_t operator()(std::string_view text) const { return static_cast<std::size_t>(keyed_hash(text)); }
};

}  // namespace flamed
