// SPDX-License-Identifier: Apache-2.0
//
// HeaderLine: one parsed header of a request. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flamed::api {

struct HeaderLine {
  std::string_view name;
  std::string_view value;  ///< without blanks around it
};

/// Letters, digits and some marks: the characters of methods and header names (RFC 9110, 5.6.2).
[[nodiscard]] bool is_token(std::string_view text);

/// `line` is without its line end. Empty unless it is a token, directly followed by a colon, and a value: programs
/// disagree about a blank before the colon or at the beginning (a folded line; RFC 9112, 5.1 and 5.2). The parts point
/// into `line`.
std::optional<HeaderLine> parse_header_line(std::string_view line);

/// Header names are compared without regard to case. `lower` is in lower case.
[[nodiscard]] bool is_named(const HeaderLine& header, std::string_view lower);

/// Is `lower` one of the words of a list, as in "keep-alive, Upgrade"? Without regard to case.
[[nodiscard]] bool has_word(std::string_view list, std::string_view lower);

/// Of a header Content-Type: without its parameters, in lower case.
[[nodiscard]] std::string media_type_of(std::string_view content_type);

}  // namespace flamed::api
