// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/vdso_symbols.h"

#include <sys/auxv.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/file.h"
#include "symbolizer/reader/elf_symbol_reader.h"

namespace flamed::symbolizer {

std::optional<AddressRange> mapping_that_holds(std::string_view maps, std::uint64_t address) {
  while (!maps.empty()) {
    const std::size_t line_end = std::min(maps.find('\n'), maps.size());
    const std::string_view line = maps.substr(0, line_end);
    maps.remove_prefix(std::min(line_end + 1, maps.size()));
    AddressRange range;
    const char* const end = line.data() + line.size();
    const auto first = std::from_chars(line.data(), end, range.start, 16);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') continue;
    const auto second = std::from_chars(first.ptr + 1, end, range.end, 16);
    if (second.ec != std::errc()) continue;
    if (address >= range.start && address < range.end) return range;
  }
  return std::nullopt;
}

Result<ElfSymbols> read_vdso_symbols() {
  // Only getauxval() gives an address that no mapping's name can fake.
  const std::uint64_t start = ::getauxval(AT_SYSINFO_EHDR);
  if (start == 0) return Error("this kernel gives its processes no vdso");
  constexpr std::size_t kMaxMapsBytes = std::size_t{16} << 20;
  Result<std::string> maps = read_file("/proc/self/maps", kMaxMapsBytes);
  if (!maps) return std::move(maps).error().with_context("cannot find the end of the vdso");
  const std::optional<AddressRange> range = mapping_that_holds(*maps, start);
  if (!range) return Error("no mapping of this process holds the vdso");
  const auto* image = reinterpret_cast<const std::byte*>(start);  // NOLINT(performance-no-int-to-ptr)
  Result<ElfSymbols> symbols = read_elf_symbols(std::span(image, range->end - start));
  if (!symbols) return std::move(symbols).error().with_context("vdso");
  return symbols;
}

}  // namespace flamed::symbolizer
