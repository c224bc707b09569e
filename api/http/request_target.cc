// SPDX-License-Identifier: Apache-2.0
#include "api/http/request_target.h"

#include <optional>

namespace flamed::api {
namespace {

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const auto high = hex_digit(text[i + 1]);
      const auto low = hex_digit(text[i + 2]);
      if (!high || !low) return std::nullopt;
      out += static_cast<char>(*high << 4 | *low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

Error bad_escape() {
  return Error("A % in the address is not followed by two hexadecimal digits. Write a plain % as %25.");
}

}  // namespace

Result<RequestTarget> parse_request_target(std::string_view target) {
  target = target.substr(0, target.find('#'));
  if (target.empty() || target.front() != '/') return Error("The address must begin with a slash, as in /profile.");
  const std::size_t question = target.find('?');
  auto path = decode(target.substr(0, question), false);
  if (!path) return bad_escape();
  RequestTarget parsed{std::move(*path), {}};
  if (question == std::string_view::npos) return parsed;

  std::string_view rest = target.substr(question + 1);
  while (!rest.empty()) {
    const std::size_t end = rest.find('&');
    const std::string_view item = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (item.empty()) continue;
    const std::size_t equals = item.find('=');
    auto name = decode(item.substr(0, equals), true);
    auto value = decode(equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1), true);
    if (!name || !value) return bad_escape();
    parsed.query.push_back({std::move(*name), std::move(*value)});
  }
  return parsed;
}

}  // namespace flamed::api
