// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/proc_text.h"

#include <charconv>

namespace flamed::symbolizer {
namespace {

/// Takes fields off the front of a line.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}

  /// A number in `base`, followed by `delimiter`, which is taken as well.
  template <typename T>
  bool number(T& value, int base, char delimiter) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (error != std::errc{}) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return take(delimiter);
  }

  bool take(char expected) {
    if (rest_.empty() || rest_.front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view take_bytes(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  /// Up to and including the next blank.
  bool skip_word() {
    const std::size_t blank = rest_.find(' ');
    if (blank == std::string_view::npos) return false;
    rest_.remove_prefix(blank + 1);
    return true;
  }

  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace

std::string_view without_deleted_mark(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return path;
}

std::optional<MapsLine> parse_maps_line(std::string_view line) {
  // 7f2c7a000000-7f2c7a021000 r-xp 00028000 fe:00 1234    /usr/lib/libc.so.6
  MapsLine mapping;
  Fields fields(line);
  if (!fields.number(mapping.start, 16, '-') || !fields.number(mapping.end, 16, ' ')) return std::nullopt;
  const std::string_view permissions = fields.take_bytes(4);
  if (permissions.size() != 4 || !fields.take(' ')) return std::nullopt;
  mapping.executable = permissions[2] == 'x';
  if (!fields.number(mapping.file_offset, 16, ' ') || !fields.number(mapping.file.device_major, 16, ':') ||
      !fields.number(mapping.file.device_minor, 16, ' ')) {
    return std::nullopt;
  }
  // A line without a path ends with the inode, with or without a blank after it.
  const std::string_view inode = fields.rest();
  const auto [end, error] = std::from_chars(inode.data(), inode.data() + inode.size(), mapping.file.inode);
  if (error != std::errc{} || mapping.end <= mapping.start) return std::nullopt;
  fields.take_bytes(static_cast<std::size_t>(end - inode.data()));
  if (!fields.rest().empty() && !fields.take(' ')) return std::nullopt;
  fields.skip_blanks();
  mapping.path = mapping.file.is_file() ? without_deleted_mark(fields.rest()) : fields.rest();
  return mapping;
}

std::vector<MapsLine> parse_executable_maps(std::string_view text) {
  std::vector<MapsLine> mappings;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    const std::optional<MapsLine> mapping = parse_maps_line(line);
    if (mapping && mapping->executable) mappings.push_back(*mapping);
  }
  return mappings;
}

std::optional<StatLine> parse_stat(std::string_view text) {
  // pid (comm) state ppid ...: the comm may have blanks and parentheses, so its end is the last ')'.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  StatLine stat;
  stat.comm = text.substr(open + 1, close - open - 1);
  Fields fields(text.substr(close + 1));
  if (!fields.take(' ')) return std::nullopt;
  const std::string_view state = fields.take_bytes(1);
  if (state.empty() || !fields.take(' ')) return std::nullopt;
  stat.state = state.front();
  if (!fields.number(stat.parent_pid, 10, ' ')) return std::nullopt;
  const auto skip = [&](int from, int to) {
    for (int field = from; field <= to; ++field) {
      if (!fields.skip_word()) return false;
    }
    return true;
  };
  // ppid is field 4; utime and stime are 14 and 15, the start time is 22.
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  if (!skip(5, 13) || !fields.number(user_ticks, 10, ' ') || !fields.number(system_ticks, 10, ' ')) return std::nullopt;
  stat.cpu_ticks = user_ticks + system_ticks;
  if (!skip(16, 21)) return std::nullopt;
  if (!fields.number(stat.start_ticks, 10, ' ')) return std::nullopt;
  return stat;
}

}  // namespace flamed::symbolizer
