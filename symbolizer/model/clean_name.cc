// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/clean_name.h"

#include <algorithm>
#include <cstdint>

namespace flamed::symbolizer {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kCut = "...";

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  ///< 0: not UTF-8
};

/// Decodes the character at the start of `text` (not empty) after Unicode 15, table 3-7: no overlong forms, no
/// surrogates, nothing past U+10FFFF.
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = (value << 6) | (byte(i) & 0x3FU);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, bytes};
}

bool is_printable(std::uint32_t value) {
  if (value < 0x20 || (value >= 0x7F && value <= 0x9F)) return false;
  if (value >= 0x2028 && value <= 0x202E) return false;  // separators and bidirectional embeddings
  if (value >= 0x2066 && value <= 0x2069) return false;  // bidirectional isolates
  return true;
}

}  // namespace

std::string clean_name(std::string_view name, std::size_t limit_bytes) {
  const bool plain = name.size() <= limit_bytes && std::all_of(name.begin(), name.end(), [](char c) {
                       return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F;
                     });
  if (plain) return std::string(name);

  std::string clean;
  std::size_t fits = 0;  // length of the longest prefix that leaves room for kCut
  while (!name.empty()) {
    const CodePoint point = decode(name);
    const bool keep = point.bytes != 0 && is_printable(point.value);
    const std::size_t taken = std::max<std::size_t>(point.bytes, 1);
    clean += keep ? name.substr(0, taken) : kReplacement;
    name.remove_prefix(taken);
    if (clean.size() + kCut.size() <= limit_bytes) fits = clean.size();
    if (clean.size() > limit_bytes) {
      clean.resize(fits);
      clean += kCut;
      return clean;
    }
  }
  return clean;
}

}  // namespace flamed::symbolizer
