// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/direct_module_reader.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "symbolizer/dwarf/source_locator.h"
#include "symbolizer/elf/elf_facts_reader.h"
#include "symbolizer/go/go_locator.h"
#include "symbolizer/jit/jit_dump.h"
#include "symbolizer/jit/perf_map.h"
#include "symbolizer/reader/container_names.h"
#include "symbolizer/reader/demangle.h"
#include "symbolizer/reader/disassembler.h"
#include "symbolizer/reader/elf_symbol_reader.h"
#include "symbolizer/reader/engine_answer.h"
#include "symbolizer/reader/function_rows.h"
#include "symbolizer/reader/hotspot_reader.h"
#include "symbolizer/reader/module_rows.h"
#include "symbolizer/reader/runtime_reader.h"

namespace flamed::symbolizer {

Result<ElfFacts> DirectModuleReader::inspect(int fd) { return read_elf_facts(fd); }

Result<ElfSymbols> DirectModuleReader::read_symbols(const ModuleFiles& files) { return read_elf_symbols(files); }

Result<std::vector<SourceChain>> DirectModuleReader::locate(const ModuleFiles& files,
                                                            std::span<const std::uint64_t> offsets) {
  std::optional<std::vector<SourceChain>> chains = locate_go(files.module, offsets);
  if (!chains) return locate_sources(files, offsets);
  // The rest is C code in a Go program.
  std::vector<std::size_t> rest;
  std::vector<std::uint64_t> rest_offsets;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (!(*chains)[i].empty()) continue;
    rest.push_back(i);
    rest_offsets.push_back(offsets[i]);
  }
  if (rest.empty()) return *std::move(chains);
  if (Result<std::vector<SourceChain>> found = locate_sources(files, rest_offsets)) {
    for (std::size_t i = 0; i < rest.size(); ++i) (*chains)[rest[i]] = std::move((*found)[i]);
  }
  return *std::move(chains);
}

Result<SourcedRows> DirectModuleReader::read_unwind_rows(int fd, int /*kept*/) { return read_module_rows(fd); }

Result<std::vector<unwinder::UnwindRows>> DirectModuleReader::read_function_rows(
    int fd, std::span<const std::uint64_t> offsets) {
  return symbolizer::read_function_rows(fd, offsets);
}

Result<SymbolTable> DirectModuleReader::read_jit_symbols(int fd, JitFormat format) {
  return format == JitFormat::kPerfMap ? read_perf_map(fd) : read_jit_dump(fd);
}

Result<std::optional<RuntimeModule>> DirectModuleReader::find_runtime(int fd) { return symbolizer::find_runtime(fd); }

Result<std::vector<RuntimeAnswer>> DirectModuleReader::read_runtime_functions(ProcessMemory memory,
                                                                              const RuntimeProcess& process,
                                                                              std::span<const RuntimeCode> codes,
                                                                              std::span<const CopiedCode> copies) {
  return symbolizer::read_runtime_functions(memory.fd, process, codes, copies);
}

Result<std::optional<HotSpotModule>> DirectModuleReader::find_hotspot(int fd, ProcessMemory memory,
                                                                      const HotSpotMapping& mapping) {
  return symbolizer::find_hotspot(fd, memory.fd, mapping);
}

Result<runtimes::HotSpotCode> DirectModuleReader::read_hotspot_code(ProcessMemory memory,
                                                                    const runtimes::HotSpotLayout& layout,
                                                                    std::uint64_t base,
                                                                    std::span<const runtimes::HotSpotKnownBlob> known) {
  return symbolizer::read_hotspot_code(memory.fd, layout, base, known);
}

Result<HotSpotNames> DirectModuleReader::read_hotspot_names(ProcessMemory memory, const runtimes::HotSpotLayout& layout,
                                                            std::uint64_t base, const HotSpotQuestion& question) {
  return symbolizer::read_hotspot_names(memory.fd, layout, base, question);
}

Result<ContainerNames> DirectModuleReader::read_container(int fd, ContainerFormat format, const std::string& id) {
  return read_container_file(fd, format, id);
}

Result<ContainerNames> DirectModuleReader::read_engine_answer(int connection, EngineProtocol protocol,
                                                              const std::string& id) {
  return symbolizer::read_engine_answer(connection, protocol, id);
}

Result<Disassembly> DirectModuleReader::disassemble(int fd, const DisassemblyQuestion& question) {
  return symbolizer::disassemble(fd, question);
}

Result<std::vector<DemangledName>> DirectModuleReader::demangle(std::span<const std::string> mangled) {
  std::vector<DemangledName> names;
  names.reserve(mangled.size());
  for (const std::string& name : mangled) names.push_back(symbolizer::demangle(name));
  return names;
}

}  // namespace flamed::symbolizer
