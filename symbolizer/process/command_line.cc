// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/command_line.h"

#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {
namespace {

constexpr std::string_view kMasked = "***";
/// Words with these characters need quotes. Others stay readable: nobody pastes them into a shell.
constexpr std::string_view kNeedsQuotes = " \t\n\r\v\f'\"";

std::string quoted(std::string_view argument) {
  if (!argument.empty() && argument.find_first_of(kNeedsQuotes) == std::string_view::npos) return std::string(argument);
  std::string text = "'";
  for (const char c : argument) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += c;
    }
  }
  return text + "'";
}

std::string redacted(std::string_view argument) {
  if (argument == "--" || !argument.starts_with('-') || argument.size() == 1) {
    return std::string(argument == "--" ? argument : kMasked);
  }
  if (argument.starts_with("--")) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string_view::npos) return quoted(argument);
    return quoted(argument.substr(0, equals)) + "=" + std::string(kMasked);
  }
  // -psecret: the rest after the letter may be a value.
  return std::string(argument.substr(0, 2)) + (argument.size() > 2 ? std::string(kMasked) : "");
}

}  // namespace

std::string format_command_line(std::string_view raw, CommandLines how) {
  if (how == CommandLines::kOff) return {};
  const bool cut = raw.size() >= kCommandLineLimitBytes;
  // A title is padded with NULs or blanks to the length of the arguments that it overwrote.
  const std::size_t last = raw.find_last_not_of(std::string_view("\0 ", 2));
  if (last == std::string_view::npos) return {};
  const std::string_view title = raw.substr(0, last + 1);

  std::string line;
  if (title.find('\0') == std::string_view::npos) {
    const std::size_t blank = how == CommandLines::kRedacted ? title.find(' ') : std::string_view::npos;
    line = std::string(title.substr(0, blank));
    if (blank != std::string_view::npos) (line += ' ') += kMasked;
  } else {
    bool masked_before = false;
    for (bool first = true; !raw.empty(); first = false) {
      const std::size_t end = raw.find('\0');
      const std::string_view argument = raw.substr(0, end);
      raw.remove_prefix(end == std::string_view::npos ? raw.size() : end + 1);
      const bool shown = first || how == CommandLines::kFull;
      const std::string word = shown ? quoted(argument) : redacted(argument);
      const bool is_masked = !shown && word == kMasked;
      if (is_masked && masked_before) continue;
      if (!first) line += ' ';
      line += word;
      masked_before = is_masked;
    }
  }
  if (cut && how == CommandLines::kFull) line += "...";
  return clean_name(line, kCommandLineLimitBytes);
}

}  // namespace flamed::symbolizer
