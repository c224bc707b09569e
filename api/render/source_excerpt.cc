// SPDX-License-Identifier: Apache-2.0
#include "api/render/source_excerpt.h"

#include <algorithm>

#include "api/text/clean_line.h"

namespace flamed::api {
namespace {

constexpr std::uint32_t kAround = 4;
constexpr std::size_t kTabColumns = 8;
/// What a line costs in an answer besides its text.
constexpr std::size_t kBytesOfLine = 32;

std::string shown(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::string text;
  std::size_t column = 0;
  // More than is shown, so that clean_line() marks the cut.
  for (const char c : line.substr(0, 2 * kMostSourceLineBytes)) {
    const bool continues = (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
    const std::size_t width = c == '\t' ? kTabColumns - column % kTabColumns : 1;
    c == '\t' ? text.append(width, ' ') : text.append(1, c);
    if (!continues) column += width;
  }
  return clean_line(text, kMostSourceLineBytes);
}

}  // namespace

void add_lines(std::string_view text, std::span<const std::uint32_t> wanted, std::size_t& room, SourceExcerpt& to) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::uint32_t number = 0;
  while (!text.empty() && !wanted.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (number + kAround < wanted.front()) continue;
    SourceExcerpt::Line row{number, shown(line)};
    const std::size_t bytes = row.text.size() + kBytesOfLine;
    if (bytes > room) {
      to.reason = "the rest of it is too much for one answer";
      return;
    }
    room -= bytes;
    to.lines.push_back(std::move(row));
    while (!wanted.empty() && wanted.front() + kAround <= number) wanted = wanted.subspan(1);
  }
  if (!wanted.empty() && wanted.front() > number) {
    to.reason = "it has " + std::to_string(number) + " lines, so it is another version than what was sampled";
  }
}

}  // namespace flamed::api
