// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/jit/perf_map.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "symbolizer/elf/elf_input.h"
#include "symbolizer/jit/jit_ranges.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint32_t kMaxTableNameBytes = 2 * static_cast<std::uint32_t>(kMaxPerfMapBytes);

/// Takes a hexadecimal number and at least one blank after it from the front of `line`.
std::optional<std::uint64_t> take_hex(std::string_view& line) {
  if (line.size() > 2 && line[0] == '0' && (line[1] == 'x' || line[1] == 'X')) line.remove_prefix(2);
  std::uint64_t value = 0;
  const char* const line_end = line.data() + line.size();
  const auto [end, error] = std::from_chars(line.data(), line_end, value, 16);
  if (error != std::errc{} || end == line_end || *end != ' ') return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return value;
}

bool add_line(std::string_view line, JitRanges& ranges) {
  const std::optional<std::uint64_t> start = take_hex(line);
  if (!start) return false;
  const std::optional<std::uint64_t> size = take_hex(line);
  return size && ranges.add(*start, *size, line);
}

}  // namespace

Result<PerfMap> parse_perf_map(std::string_view text) {
  PerfMap map;
  JitRanges ranges;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (!line.empty() && !add_line(line, ranges)) ++map.bad_lines;
  }
  map.entries = ranges.size();
  if (map.entries == 0 && map.bad_lines != 0) return Error("not a perf map: no line is of the form START SIZE name");
  Result<SymbolTable> table = std::move(ranges).build(kMaxTableNameBytes);
  if (!table) return std::move(table).error();
  map.functions = std::move(table).value();
  return map;
}

Result<SymbolTable> read_perf_map(int fd) {
  const Result<ElfInput> input = ElfInput::from_fd(fd);
  if (!input) return Error(input.error());
  const std::uint64_t skipped = input->size() > kMaxPerfMapBytes ? input->size() - kMaxPerfMapBytes : 0;
  const auto bytes = static_cast<std::size_t>(input->size() - skipped);
  const auto buffer = std::make_unique_for_overwrite<char[]>(bytes);
  if (!input->read(skipped, buffer.get(), bytes)) return Error("the perf map became shorter while it was read");
  std::string_view text(buffer.get(), bytes);
  // The first line is most likely incomplete.
  if (skipped != 0) text.remove_prefix(std::min(text.find('\n'), text.size()));
  Result<PerfMap> map = parse_perf_map(text);
  if (!map) return std::move(map).error();
  return std::move(map->functions);
}

}  // namespace flamed::symbolizer
