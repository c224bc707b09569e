// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an ELF file: its unwind sections are within limits, and their rows can be built.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/handle.h"
#include "symbolizer/reader/elf_unwind_source.h"
#include "test/unit/unwinder/load_rows.h"

namespace {

using flamed::Result;
using flamed::symbolizer::ElfUnwindSource;
using flamed::unwinder::UnwindRows;

void use(const Result<ElfUnwindSource>& source, std::size_t size) {
  if (!source) {
    if (source.error().message().empty()) std::abort();
    return;
  }
  for (std::size_t i = 0; i < source->code.size(); ++i) {
    const auto& segment = source->code[i];
    if (segment.offset + segment.size > size) std::abort();
    if (i != 0 && segment.address < source->code[i - 1].address + source->code[i - 1].size) std::abort();
  }
  Result<UnwindRows> rows = flamed::unwinder::rows_of(*source);
  if (!rows) return;
  static_cast<void>(by_file_offset(std::move(rows).value(), flamed::unwinder::segments_of(*source)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  use(flamed::symbolizer::read_elf_unwind_source(std::as_bytes(std::span(data, size))), size);

  // libelf reads a descriptor through other code than memory.
  static const flamed::Fd file(::memfd_create("elf_unwind_source_fuzz", MFD_CLOEXEC));
  if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size)) return 0;
  use(flamed::symbolizer::read_elf_unwind_source(file.get()), size);
  return 0;
}
