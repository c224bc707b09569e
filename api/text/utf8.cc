// SPDX-License-Identifier: Apache-2.0
#include "api/text/utf8.h"

#include <cstring>

namespace flamed::api {

std::size_t utf8_character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  if (text.empty()) return 0;
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;   // below: overlong
    const unsigned high = first == 0xED ? 0x9F : 0xBF;  // above: surrogates
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;   // below: overlong
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;  // above: beyond U+10FFFF
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  // Nearly all names are ASCII: eight characters at a time.
  constexpr std::uint64_t kNotAscii = 0x8080808080808080ULL;
  for (std::uint64_t eight = 0; text.size() >= sizeof(eight); text.remove_prefix(sizeof(eight))) {
    std::memcpy(&eight, text.data(), sizeof(eight));
    if ((eight & kNotAscii) != 0) break;
  }
  while (!text.empty()) {
    const std::size_t length = utf8_character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool append_utf8(std::string& out, std::uint32_t code_point) {
  constexpr std::uint32_t kLast = 0x10FFFF;
  if (code_point > kLast || (code_point >= 0xD800 && code_point <= 0xDFFF)) return false;
  const auto continuation = [&](unsigned shift) { return static_cast<char>(0x80U | ((code_point >> shift) & 0x3FU)); };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += {static_cast<char>(0xC0U | (code_point >> 6U)), continuation(0)};
  } else if (code_point < 0x10000) {
    out += {static_cast<char>(0xE0U | (code_point >> 12U)), continuation(6), continuation(0)};
  } else {
    out += {static_cast<char>(0xF0U | (code_point >> 18U)), continuation(12), continuation(6), continuation(0)};
  }
  return true;
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_character_length(text);
    if (length == 0) {
      out += kReplacementCharacter;
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace flamed::api
