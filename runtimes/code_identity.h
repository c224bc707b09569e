// SPDX-License-Identifier: Apache-2.0
//
// CodeIdentity: what tells a code object from another one that has had its address. A runtime frees code, and may put
// the next one of the same size into its place, with a name and lines at the same addresses as well. So beside
// addresses a number counts that each object has for itself, or its first line, and how its name ends.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

/// Offsets in bytes. Passed on as it is in memory.
struct CodeIdentity {
  static constexpr std::uint16_t kFewestWords = 3;
  static constexpr std::uint16_t kMostWords = 4;

  // In a code object:
  std::uint16_t at = 0;      ///< words of 8 bytes ...
  std::uint16_t words = 0;   ///< ... so many
  std::uint16_t number = 0;  ///< 32 bits; 0: there is none
  std::uint16_t name = 0;    ///< the address of a text; 0: there is none
  // In the text:
  std::uint16_t name_length = 0;  ///< 64 bits
  std::uint16_t name_text = 0;

  friend bool operator==(const CodeIdentity&, const CodeIdentity&) = default;
};

/// The kernel program computes the same (bpf/linked_frames.h). Never 0.
inline std::uint64_t check_word(std::span<const std::uint64_t> words, std::uint32_t number = 0,
                                std::uint64_t name_end = 0) {
  constexpr std::array<std::uint64_t, CodeIdentity::kMostWords> kFactors{0x9e3779b97f4a7c15ULL, 0xff51afd7ed558ccdULL,
                                                                         0xc4ceb9fe1a85ec53ULL, 0xd6e8feb86659fd93ULL};
  constexpr std::uint64_t kOfNumber = 0xa0761d6478bd642fULL;
  constexpr std::uint64_t kOfName = 0xe7037ed1a0b428dbULL;
  constexpr unsigned kBits = 48;
  std::uint64_t check = number * kOfNumber ^ name_end * kOfName;
  for (std::size_t i = 0; i < words.size() && i < kFactors.size(); ++i) check ^= words[i] * kFactors[i];
  check ^= check >> 29;
  return (check * kFactors[0] >> (64 - kBits)) | 1;
}

/// Is it still the code object of that check word? The kernel program leaves out a name that is not in memory at the
/// moment.
inline bool has_check_word(RemoteMemory& memory, const CodeIdentity& identity, std::uint64_t code,
                           std::uint64_t check) {
  std::array<std::uint64_t, CodeIdentity::kMostWords> all{};
  const auto words = std::span(all).first(std::min(identity.words, CodeIdentity::kMostWords));
  if (!memory.read(code + identity.at, std::as_writable_bytes(words))) return false;
  std::uint32_t number = 0;
  if (identity.number != 0) {
    const auto read = read_number<std::uint32_t>(memory, code + identity.number);
    if (!read) return false;
    number = *read;
  }
  if (check_word(words, number) == check) return true;
  if (identity.name == 0) return false;
  const auto name = read_number<std::uint64_t>(memory, code + identity.name);
  const auto length = name ? read_number<std::uint64_t>(memory, *name + identity.name_length) : std::nullopt;
  if (!length) return false;
  constexpr std::uint64_t kBeforeLast = sizeof(std::uint64_t) - 1;
  const std::uint64_t end = *name + identity.name_text + (*length > kBeforeLast ? *length - kBeforeLast : 0);
  const auto text = read_number<std::uint64_t>(memory, end);
  return text && check_word(words, number, *text) == check;
}

}  // namespace flamed::runtimes
