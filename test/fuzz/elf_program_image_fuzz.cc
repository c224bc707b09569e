// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an ELF file in which a runtime is looked for: symbols, bytes with relocations, and libraries.
#include "symbolizer/elf/elf_program_image.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flamed::symbolizer;
  auto sections = ElfSections::open(std::as_bytes(std::span(data, size)));
  if (!sections) return 0;
  ElfProgramImage image(*sections);
  std::array<std::byte, 24> bytes{};
  for (const char* const name : {"_PyRuntime", "pointers", "code", "undefined"}) {
    const auto symbol = image.symbol(name);
    if (!symbol) continue;
    for (const std::uint64_t distance : {std::uint64_t{0}, std::uint64_t{5}, UINT64_MAX - 3}) {
      static_cast<void>(image.read(symbol->address + distance, bytes));
      static_cast<void>(image.is_block_number(symbol->address + distance));
    }
  }
  static_cast<void>(image.needs("libc.so.6"));
  return 0;
}
