// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/elf_symbols.h"

namespace flamed::symbolizer {

std::optional<std::uint64_t> ElfSymbols::address_of(std::uint64_t file_offset) const {
  for (const Segment& segment : parts_.segments) {
    if (file_offset >= segment.offset && file_offset - segment.offset < segment.size) {
      return segment.address + (file_offset - segment.offset);
    }
  }
  return std::nullopt;
}

std::optional<SymbolTable::Found> ElfSymbols::find(std::uint64_t file_offset) const {
  const std::optional<std::uint64_t> address = address_of(file_offset);
  return address ? parts_.table.find(*address) : std::nullopt;
}

bool ElfSymbols::is_go_at(std::uint64_t file_offset) const {
  const std::optional<std::uint64_t> address = address_of(file_offset);
  return address && parts_.go_code.holds(*address);
}

std::size_t ElfSymbols::bytes() const {
  return sizeof(*this) + parts_.table.bytes() + parts_.segments.capacity() * sizeof(Segment) +
         parts_.build_id.capacity();
}

}  // namespace flamed::symbolizer
