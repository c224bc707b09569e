// SPDX-License-Identifier: Apache-2.0
//
// DirectModuleReader: reads in the calling thread, in flamed the ELF worker's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "symbolizer/model/module_reader.h"

namespace flamed::symbolizer {

class DirectModuleReader final : public ModuleReader {
 public:
  Result<ElfFacts> inspect(int fd) override;
  Result<ElfSymbols> read_symbols(const ModuleFiles& files) override;
  Result<std::vector<SourceChain>> locate(const ModuleFiles& files, std::span<const std::uint64_t> offsets) override;
  Result<SourcedRows> read_unwind_rows(int fd, int kept) override;
  Result<std::vector<unwinder::UnwindRows>> read_function_rows(int fd, std::span<const std::uint64_t> offsets) override;
  Result<SymbolTable> read_jit_symbols(int fd, JitFormat format) override;
  Result<std::optional<RuntimeModule>> find_runtime(int fd) override;
  Result<std::vector<RuntimeAnswer>> read_runtime_functions(ProcessMemory memory, const RuntimeProcess& process,
                                                            std::span<const RuntimeCode> codes,
                                                            std::span<const CopiedCode> copies) override;
  Result<std::optional<HotSpotModule>> find_hotspot(int fd, ProcessMemory memory,
                                                    const HotSpotMapping& mapping) override;
  Result<runtimes::HotSpotCode> read_hotspot_code(ProcessMemory memory, const runtimes::HotSpotLayout& layout,
                                                  std::uint64_t base,
                                                  std::span<const runtimes::HotSpotKnownBlob> known) override;
  Result<HotSpotNames> read_hotspot_names(ProcessMemory memory, const runtimes::HotSpotLayout& layout,
                                          std::uint64_t base, const HotSpotQuestion& question) override;
  Result<ContainerNames> read_container(int fd, ContainerFormat format, const std::string& id) override;
  Result<ContainerNames> read_engine_answer(int connection, EngineProtocol protocol, const std::string& id) override;
  Result<Disassembly> disassemble(int fd, const DisassemblyQuestion& question) override;
  Result<std::vector<DemangledName>> demangle(std::span<const std::string> mangled) override;
};

}  // namespace flamed::symbolizer
