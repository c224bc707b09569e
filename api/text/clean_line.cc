// SPDX-License-Identifier: Apache-2.0
#include "api/text/clean_line.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "api/text/utf8.h"

namespace flamed::api {
namespace {

using Range = std::pair<std::uint32_t, std::uint32_t>;
/// Control characters, and those by which a text reads otherwise than it is: without width, of direction, of
/// formatting, variation selectors and tags (Unicode categories Cc and Cf, and default ignorable ones).
constexpr std::array<Range, 14> kUnseen{{{0x00, 0x1F},
                                         {0x7F, 0x9F},
                                         {0xAD, 0xAD},
                                         {0x61C, 0x61C},
                                         {0x115F, 0x1160},
                                         {0x180B, 0x180F},
                                         {0x200B, 0x200F},
                                         {0x2028, 0x202E},
                                         {0x2060, 0x206F},
                                         {0x3164, 0x3164},
                                         {0xFE00, 0xFE0F},
                                         {0xFEFF, 0xFEFF},
                                         {0xFFF9, 0xFFFB},
                                         {0xE0000, 0xE0FFF}}};

std::uint32_t code_point_of(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first;
  std::uint32_t code = first & (0x7FU >> character.size());
  for (const char c : character.substr(1)) code = (code << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

bool is_unseen(std::string_view character) {
  const std::uint32_t code = code_point_of(character);
  return std::any_of(kUnseen.begin(), kUnseen.end(),
                     [&](const Range& range) { return range.first <= code && code <= range.second; });
}

}  // namespace

std::string clean_line(std::string_view line, std::size_t most_bytes) {
  std::string clean;
  while (!line.empty()) {
    const std::size_t length = utf8_character_length(line);
    const std::string_view character = line.substr(0, std::max<std::size_t>(length, 1));
    const std::string_view shown = length == 0 || is_unseen(character) ? "_" : character;
    if (clean.size() + shown.size() + kCutMark.size() > most_bytes && line.size() > kCutMark.size())
      return clean.append(kCutMark);
    clean += shown;
    line.remove_prefix(character.size());
  }
  return clean;
}

}  // namespace flamed::api
