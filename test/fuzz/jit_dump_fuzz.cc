// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a jitdump: a table or an error, within the limits, never a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "symbolizer/jit/jit_dump.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using flamed::symbolizer::ElfInput;
  const auto table = flamed::symbolizer::parse_jit_dump(ElfInput::from_memory(std::as_bytes(std::span(data, size))));
  if (!table.ok()) {
    if (table.error().message().empty()) std::abort();
    return 0;
  }
  for (std::uint64_t address = 0; address < 0x2000; address += 7) {
    const auto found = table->find(address);
    if (found && found->name.empty()) std::abort();
  }
  static_cast<void>(table->find(UINT64_MAX));
  return 0;
}
