// SPDX-License-Identifier: Apache-2.0
//
// CodeCheck: what tells a code object from another one that has had its address. The kernel program makes a check word
// of it when a sample meets the object (bpf/walk/linked_frames.h), and the reader of names makes it again.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

/// Offsets in bytes.
struct CodeCheck {
  // In a code object:
  std::uint16_t at = 0;     ///< words of 8 bytes that never change
  std::uint16_t words = 0;  ///< at most kMostCheckWords
  // Addresses among these words of two texts of CPython, which may have been replaced in place as well:
  std::uint16_t name = 0;  ///< its hash counts
  std::uint16_t file = 0;  ///< its last characters count
  std::uint16_t text = 0;  ///< in a text: its characters; 0: the words suffice

  friend bool operator==(const CodeCheck&, const CodeCheck&) = default;
};

inline constexpr std::size_t kMostCheckWords = 12;

inline std::uint64_t mix_check(std::uint64_t check, std::uint64_t word) {
  return (check ^ word) * 0x9e3779b97f4a7c15ULL;
}

/// Of the words alone, and what `text` counts for. Never 0.
inline std::uint64_t check_word(std::span<const std::uint64_t> words, const std::array<std::uint64_t, 4>& text = {}) {
  constexpr unsigned kBits = 48;
  std::uint64_t check = 0;
  for (std::size_t i = 0; i < kMostCheckWords; ++i) check = mix_check(check, i < words.size() ? words[i] : 0);
  for (const std::uint64_t each : text) check = mix_check(check, each);
  return mix_check(check, check >> 32) >> (64 - kBits) | 1;
}

/// Of the code object at this address. 0: it can't be read.
inline std::uint64_t read_check_word(RemoteMemory& memory, const CodeCheck& check, std::uint64_t code) {
  std::array<std::uint64_t, kMostCheckWords> words{};
  const auto used = std::span(words).first(std::min<std::size_t>(check.words, words.size()));
  if (!memory.read(code + check.at, std::as_writable_bytes(used))) return 0;
  if (check.text == 0) return check_word(words);

  constexpr std::uint64_t kLength = 16;
  constexpr std::uint64_t kHash = 24;
  constexpr std::uint64_t kMostChecked = 192;
  const auto word = [&](std::uint64_t address) { return read_number<std::uint64_t>(memory, address).value_or(0); };
  const auto pointer = [&](std::uint16_t offset) { return words[(offset - check.at) / 8U % words.size()]; };
  const std::uint64_t file = pointer(check.file);
  const std::uint64_t said = word(file + kLength);
  const std::uint64_t length = static_cast<std::int64_t>(said - kMostChecked) < 0 ? said : kMostChecked;
  std::array<std::uint64_t, 2> end{};
  if (!memory.read(file + check.text + length - sizeof(end), std::as_writable_bytes(std::span(end)))) end = {};
  return check_word(words, {word(pointer(check.name) + kHash), length, end[0], end[1]});
}

}  // namespace flamed::runtimes
