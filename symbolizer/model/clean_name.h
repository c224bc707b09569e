// SPDX-License-Identifier: Apache-2.0
//
// clean_name: makes an untrusted name safe to print. The author of a program chooses its symbol names, so they may have
// terminal escapes, newlines or broken UTF-8. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flamed::symbolizer {

inline constexpr std::size_t kMaxNameBytes = 4096;

/// Valid UTF-8 of at most `limit_bytes`, on one line: control characters (C0, DEL, C1), line and paragraph separators,
/// bidirectional overrides and bytes that are not UTF-8 each become U+FFFD. A cut name ends in "...".
/// `limit_bytes` must be at least 3. Characters with a meaning in one format (';' in folded stacks, '<' in HTML) stay:
/// that renderer escapes them.
std::string clean_name(std::string_view name, std::size_t limit_bytes = kMaxNameBytes);

}  // namespace flamed::symbolizer
