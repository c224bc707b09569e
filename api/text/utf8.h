// SPDX-License-Identifier: Apache-2.0
//
// Names of processes, files and functions are arbitrary bytes. Answers are UTF-8. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flamed::api {

/// U+FFFD, the replacement for bytes that are not UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// Length of the well-formed UTF-8 character that `text` begins with (Unicode table 3-7: no overlong forms, no
/// surrogates, nothing beyond U+10FFFF), or 0 where there is none.
std::size_t utf8_character_length(std::string_view text);

bool is_utf8(std::string_view text);

/// False, and nothing is appended: it is no character, but a surrogate or beyond U+10FFFF.
bool append_utf8(std::string& out, std::uint32_t code_point);

/// `text` with each byte that is no part of a character replaced by U+FFFD.
std::string repair_utf8(std::string_view text);

}  // namespace flamed::api
