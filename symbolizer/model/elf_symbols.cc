// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/elf_symbols.h"

#include <algorithm>

namespace flamed::symbolizer {

const ElfSymbols::Segment* ElfSymbols::segment_of(std::uint64_t file_offset) const {
  const auto found = std::find_if(parts_.segments.begin(), parts_.segments.end(), [&](const Segment& segment) {
    return file_offset >= segment.offset && file_offset - segment.offset < segment.size;
  });
  return found != parts_.segments.end() ? &*found : nullptr;
}

std::optional<std::uint64_t> ElfSymbols::address_of(std::uint64_t file_offset) const {
  const Segment* const segment = segment_of(file_offset);
  if (segment == nullptr) return std::nullopt;
  return segment->address + (file_offset - segment->offset);
}

std::optional<std::uint64_t> ElfSymbols::find_unnamed(std::uint64_t file_offset) const {
  const Segment* const segment = segment_of(file_offset);
  if (segment == nullptr) return std::nullopt;
  const std::optional<CodeRange> function = parts_.unnamed.find(segment->address + (file_offset - segment->offset));
  if (!function || function->start < segment->address) return std::nullopt;
  return segment->offset + (function->start - segment->address);
}

std::optional<CodeRange> ElfSymbols::function_at(std::uint64_t file_offset) const {
  const Segment* const segment = segment_of(file_offset);
  if (segment == nullptr) return std::nullopt;
  const std::uint64_t address = segment->address + (file_offset - segment->offset);
  std::optional<CodeRange> function;
  if (const auto found = parts_.table.find(address)) {
    function = CodeRange{address - found->offset, address + found->left};
  } else {
    function = parts_.unnamed.find(address);
  }
  if (!function || function->start < segment->address) return std::nullopt;
  const std::uint64_t size = std::min(function->end - segment->address, segment->size);
  return CodeRange{segment->offset + (function->start - segment->address), segment->offset + size};
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
         parts_.build_id.capacity() + parts_.unnamed.bytes();
}

}  // namespace flamed::symbolizer
