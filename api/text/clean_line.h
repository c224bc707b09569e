// SPDX-License-Identifier: Apache-2.0
//
// Names that others chose, for those who take a text as it comes: terminals and assistants. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flamed::api {

/// Ends a text that was cut.
inline constexpr std::string_view kCutMark = "...";

/// One line: what is no UTF-8, a control character, or one that is not seen or turns the direction of writing, is `_`;
/// at most so many bytes.
std::string clean_line(std::string_view line, std::size_t most_bytes);

}  // namespace flamed::api
