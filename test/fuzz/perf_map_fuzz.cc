// SPDX-License-Identifier: Apache-2.0
//
// Any text as a perf map: each address has the name of the last line that covers it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbolizer/jit/perf_map.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto map = flamed::symbolizer::parse_perf_map({reinterpret_cast<const char*>(data), size});
  if (!map.ok()) {
    if (map.error().message().empty()) std::abort();
    return 0;
  }
  if (map->entries == 0 && !map->functions.empty()) std::abort();
  for (std::uint64_t address = 0; address < 0x1000; address += 3) {
    const auto found = map->functions.find(address);
    if (found && (found->name.empty() || found->name.find('\n') != std::string_view::npos)) std::abort();
  }
  static_cast<void>(map->functions.find(UINT64_MAX));
  return 0;
}
