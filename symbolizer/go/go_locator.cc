// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/go/go_locator.h"

#include <elf.h>

#include <cstddef>
#include <exception>

#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/go/go_module.h"

namespace flamed::symbolizer {
namespace {

// Answers are sent to another process. Chains share no memory, so a hostile file could repeat a long name in each.
constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;

std::optional<std::uint64_t> address_of(const ElfSections& file, std::uint64_t offset) {
  for (const GElf_Phdr& phdr : file.segments()) {
    if (phdr.p_type != PT_LOAD || (phdr.p_flags & PF_X) == 0) continue;
    if (offset >= phdr.p_offset && offset - phdr.p_offset < phdr.p_filesz) return phdr.p_vaddr + offset - phdr.p_offset;
  }
  return std::nullopt;
}

std::optional<std::vector<SourceChain>> locate(int fd, std::span<const std::uint64_t> offsets) {
  Result<ElfSections> file = ElfSections::open(fd);
  if (!file) return std::nullopt;
  const Result<std::optional<GoModule>> go = GoModule::read(*file, GoModule::With::kInlines);
  if (!go || !go->has_value()) return std::nullopt;
  std::vector<SourceChain> chains(offsets.size());
  std::size_t text_bytes = 0;
  for (std::size_t i = 0; i < offsets.size() && text_bytes < kMaxTextBytes; ++i) {
    const std::optional<std::uint64_t> address = address_of(*file, offsets[i]);
    if (!address) continue;
    chains[i] = (*go)->table().locate(*address);
    for (const SourceFrame& frame : chains[i]) text_bytes += sizeof(frame) + frame.function.size() + frame.file.size();
  }
  return chains;
}

}  // namespace

std::optional<std::vector<SourceChain>> locate_go(int fd, std::span<const std::uint64_t> offsets) {
  try {
    return locate(fd, offsets);
  } catch (const std::exception&) {  // out of memory for a large file
    return std::nullopt;
  }
}

}  // namespace flamed::symbolizer
