// SPDX-License-Identifier: Apache-2.0
//
// Command lines: the bytes of /proc/PID/cmdline as one readable line. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flamed::symbolizer {

inline constexpr std::size_t kCommandLineLimitBytes = 4096;

enum class CommandLines : std::uint8_t {
  kFull,
  kRedacted,  ///< the program and the names of options, without any value
  kOff,
};

/// Arguments separated by blanks; an argument with blanks or quotes, or an empty one, is in single quotes as for a
/// shell. A process that wrote a title over its arguments has only one, shown unchanged. Safe to print (clean_name()),
/// at most kCommandLineLimitBytes long; a `raw` of that size or more counts as cut and ends in "...".
///
/// If redacted, the first word stays, and of the others: "--name=value" becomes "--name=***", "--name" and "--" stay,
/// "-xvalue" becomes "-x***", and anything else, which may be the value of an option, "***", once for several in a row.
/// A title's words after the first are "***".
std::string format_command_line(std::string_view raw, CommandLines how);

}  // namespace flamed::symbolizer
