// SPDX-License-Identifier: Apache-2.0
//
// Any text as /proc/kallsyms.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbolizer/names/kernel_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = flamed::symbolizer::parse_kallsyms(text);
  if (!table.ok()) return 0;
  if (table->size() == 0) std::abort();
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xffffffff81000000},
                                      std::uint64_t{0xffffffffc0201000}, std::uint64_t{UINT64_MAX}}) {
    const auto found = table->find(address);
    if (found && (found->name.empty() || found->module.empty() || found->offset > address)) std::abort();
  }
  return 0;
}
