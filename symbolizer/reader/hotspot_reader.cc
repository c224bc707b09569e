// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/hotspot_reader.h"

#include <utility>

#include "runtimes/hotspot/detect.h"
#include "symbolizer/elf/elf_program_image.h"
#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/reader/open_memory.h"

namespace flamed::symbolizer {

Result<std::optional<HotSpotModule>> find_hotspot(int fd, int memory, const HotSpotMapping& mapping) {
  Result<ElfSections> sections = ElfSections::open(fd);
  if (!sections) return std::move(sections).error();
  if (const Status loadable = sections->check_loadable(); !loadable) return std::optional<HotSpotModule>();
  ElfProgramImage image(*sections);
  const Result<std::optional<runtimes::HotSpotTables>> tables = runtimes::detect_hotspot(image);
  if (!tables) return tables.error();
  if (!*tables) return std::optional<HotSpotModule>();
  for (const GElf_Phdr& segment : sections->segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    HotSpotModule module;
    module.code_bias = segment.p_vaddr - segment.p_offset;
    OpenMemory process(memory);
    Result<runtimes::HotSpotLayout> layout =
        runtimes::read_hotspot_layout(process, **tables, module.base_of(mapping.start, mapping.file_offset));
    if (!layout) return std::move(layout).error();
    module.layout = *layout;
    return std::optional(module);
  }
  return Error("HotSpot: the file has no code");
}

Result<runtimes::HotSpotCode> read_hotspot_code(int memory, const runtimes::HotSpotLayout& layout, std::uint64_t base,
                                                std::span<const runtimes::HotSpotKnownBlob> known) {
  OpenMemory process(memory);
  return runtimes::read_hotspot_code(process, layout, base, known);
}

}  // namespace flamed::symbolizer
