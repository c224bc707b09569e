// SPDX-License-Identifier: Apache-2.0
//
// Command lines: the bytes of /proc/PID/cmdline as one line that a person reads. Pure; any thread.
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

/// Arguments joined by blanks; one that has blanks or quotes in it, or is empty, stands in single quotes as a shell
/// takes it. A process that wrote a title over its arguments has only one: it is shown as it stands. Safe to print
/// (clean_name()), at most kCommandLineLimitBytes long; `raw` of that size or more is taken to be cut and ends in
/// "...".
///
/// Redacted, the first word stays, and of what follows: "--name=value" as "--name=***", "--name" as it is, "-xvalue" as
/// "-x***", "--" as it is, and anything else, which may be the value of an option, as "***", once for a row of them.
/// A title's words after the first are "***".
std::string format_command_line(std::string_view raw, CommandLines how);

}  // namespace flamed::symbolizer
