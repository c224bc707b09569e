// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an ELF file: a value or an error, within the limits, never a crash.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/handle.h"
#include "symbolizer/reader/elf_symbol_reader.h"

namespace {

using flamed::Result;
using flamed::symbolizer::ElfSymbols;

void use(const Result<ElfSymbols>& symbols) {
  if (!symbols.ok()) {
    if (symbols.error().message().empty()) std::abort();
    return;
  }
  for (std::uint64_t offset = 0; offset < 0x4000; offset += 7) {
    const auto found = symbols->find(offset);
    if (found && found->name.empty()) std::abort();
    const auto unnamed = symbols->find_unnamed(offset);
    if (unnamed && *unnamed > offset) std::abort();
  }
  static_cast<void>(symbols->find(UINT64_MAX));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const Result<ElfSymbols> from_memory = flamed::symbolizer::read_elf_symbols(bytes);
  use(from_memory);

  // libelf reads a descriptor through other code than memory.
  static const flamed::Fd file(::memfd_create("elf_symbols_fuzz", MFD_CLOEXEC));
  if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size)) return 0;
  const Result<ElfSymbols> from_file = flamed::symbolizer::read_elf_symbols({file.get()});
  use(from_file);
  return 0;
}
