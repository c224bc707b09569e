// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the text of a source. The first two bytes choose the lines that have samples and the room.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "api/render/source_excerpt.h"
#include "api/text/utf8.h"

namespace {

using namespace flamed;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t line = 1; line < 100; line += 1 + data[0] % 16U) wanted.push_back(line);
  const std::size_t all = std::size_t{data[1]} * 16;
  std::size_t room = all;
  api::SourceExcerpt excerpt;
  api::add_lines({reinterpret_cast<const char*>(data) + 2, size - 2}, wanted, room, excerpt);
  std::size_t bytes = 0;
  std::uint32_t previous = 0;
  for (const auto& [number, text] : excerpt.lines) {
    require(number > previous && text.size() <= api::kMostSourceLineBytes && api::is_utf8(text));
    for (const char c : text) require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
    previous = number;
    bytes += text.size();
  }
  require(bytes <= all && room <= all);
  return 0;
}
