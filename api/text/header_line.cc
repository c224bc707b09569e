// SPDX-License-Identifier: Apache-2.0
#include "api/text/header_line.h"

#include <algorithm>

namespace flamed::api {
namespace {

constexpr std::string_view kTokenMarks = "!#$%&'*+-.^_`|~";

bool is_token_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kTokenMarks.find(c) != std::string_view::npos;
}

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return lower_case(a) == b; });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_token(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_token_byte); }

std::optional<HeaderLine> parse_header_line(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return std::nullopt;
  return HeaderLine{line.substr(0, colon), trim(line.substr(colon + 1))};
}

bool is_named(const HeaderLine& header, std::string_view lower) { return equals_ignoring_case(header.name, lower); }

bool has_word(std::string_view list, std::string_view lower) {
  while (!list.empty()) {
    const std::size_t length = std::min(list.find(','), list.size());
    if (equals_ignoring_case(trim(list.substr(0, length)), lower)) return true;
    list.remove_prefix(std::min(length + 1, list.size()));
  }
  return false;
}

std::string media_type_of(std::string_view content_type) {
  std::string type(trim(content_type.substr(0, content_type.find(';'))));
  std::transform(type.begin(), type.end(), type.begin(), lower_case);
  return type;
}

}  // namespace flamed::api
