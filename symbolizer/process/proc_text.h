// SPDX-License-Identifier: Apache-2.0
//
// Parsers of the text files of /proc/PID: text in, values out. Layouts: proc(5).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "symbolizer/model/file_key.h"

namespace flamed::symbolizer {

/// One line of /proc/PID/maps. The path is a view into the text.
struct MapsLine {
  std::uint64_t start = 0, end = 0, file_offset = 0;
  bool executable = false;
  FileKey file;
  std::string_view path;  ///< without the " (deleted)" that the kernel appends; empty for anonymous memory
};

/// One line without its newline. Empty if it is malformed.
std::optional<MapsLine> parse_maps_line(std::string_view line);

/// `path` without the " (deleted)" that the kernel appends to the names of deleted files.
std::string_view without_deleted_mark(std::string_view path);

/// The executable mappings, in the order of their addresses. Lines that can't be parsed are left out.
std::vector<MapsLine> parse_executable_maps(std::string_view text);

/// The needed fields of /proc/PID/stat.
struct StatLine {
  std::string_view comm;
  char state = '?';
  std::int32_t parent_pid = 0;
  std::uint64_t cpu_ticks = 0;    ///< utime + stime of all threads, including ended ones; units of 10 ms
  std::uint64_t start_ticks = 0;  ///< see ProcessId
};
std::optional<StatLine> parse_stat(std::string_view text);

}  // namespace flamed::symbolizer
