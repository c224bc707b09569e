// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace flamed::runtimes {

/// Appends a character. What is none becomes U+FFFD.
inline void append_utf8(std::string& text, std::uint32_t point) {
  constexpr std::uint32_t kReplacement = 0xfffd;
  if ((point >= 0xd800 && point < 0xe000) || point > 0x10ffff) point = kReplacement;
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xe0 | point >> 12);
    } else {
      put(0xf0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3f));
    }
    put(0x80 | (point >> 6 & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

}  // namespace flamed::runtimes
