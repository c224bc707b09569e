// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as .gnu_debugdata, an ELF file packed by xz: the output is bounded, whatever the stream claims.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "symbolizer/elf/xz.h"
#include "symbolizer/reader/elf_symbol_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flamed;
  constexpr std::size_t kLimitBytes = std::size_t{1} << 20;
  const Result<std::string> image =
      symbolizer::unpack_xz(std::string_view(reinterpret_cast<const char*>(data), size), kLimitBytes);
  if (!image.ok()) {
    if (image.error().message().empty()) std::abort();
    return 0;
  }
  if (image->size() > kLimitBytes) std::abort();
  const Result<symbolizer::ElfSymbols> symbols = symbolizer::read_elf_symbols(std::as_bytes(std::span(*image)));
  if (symbols.ok()) static_cast<void>(symbols->find(0x1000));
  return 0;
}
