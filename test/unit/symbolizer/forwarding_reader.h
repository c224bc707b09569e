// SPDX-License-Identifier: Apache-2.0
//
// ForwardingReader: a DirectModuleReader whose functions a test replaces to observe or break them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "symbolizer/reader/direct_module_reader.h"

namespace flamed::symbolizer {

class ForwardingReader : public ModuleReader {
 public:
  Result<ElfFacts> inspect(int fd) override { return direct_.inspect(fd); }
  Result<ElfSymbols> read_symbols(const ModuleFiles& files) override { return direct_.read_symbols(files); }
  Result<std::vector<SourceChain>> locate(const ModuleFiles& files, std::span<const std::uint64_t> offsets) override {
    return direct_.locate(files, offsets);
  }
  Result<SourcedRows> read_unwind_rows(int fd, int kept) override { return direct_.read_unwind_rows(fd, kept); }
  Result<std::vector<unwinder::UnwindRows>> read_function_rows(int fd,
                                                               std::span<const std::uint64_t> offsets) override {
    return direct_.read_function_rows(fd, offsets);
  }
  Result<SymbolTable> read_jit_symbols(int fd, JitFormat format) override {
    return direct_.read_jit_symbols(fd, format);
  }
  Result<std::optional<RuntimeModule>> find_runtime(int fd) override { return direct_.find_runtime(fd); }
  Result<std::vector<RuntimeAnswer>> read_runtime_functions(ProcessMemory memory, const RuntimeProcess& process,
                                                            std::span<const RuntimeCode> codes,
                                                            std::span<const CopiedCode> copies) override {
    return direct_.read_runtime_functions(memory, process, codes, copies);
  }
  Result<std::optional<HotSpotModule>> find_hotspot(int fd, ProcessMemory memory,
                                                    const HotSpotMapping& mapping) override {
    return direct_.find_hotspot(fd, memory, mapping);
  }
  Result<runtimes::HotSpotCode> read_hotspot_code(ProcessMemory memory, const runtimes::HotSpotLayout& layout,
                                                  std::uint64_t base,
                                                  std::span<const runtimes::HotSpotKnownBlob> known) override {
    return direct_.read_hotspot_code(memory, layout, base, known);
  }
  Result<HotSpotNames> read_hotspot_names(ProcessMemory memory, const runtimes::HotSpotLayout& layout,
                                          std::uint64_t base, const HotSpotQuestion& question) override {
    return direct_.read_hotspot_names(memory, layout, base, question);
  }
  Result<ContainerNames> read_container(int fd, ContainerFormat format, const std::string& id) override {
    return direct_.read_container(fd, format, id);
  }
  Result<ContainerNames> read_engine_answer(int connection, EngineProtocol protocol, const std::string& id) override {
    return direct_.read_engine_answer(connection, protocol, id);
  }
  Result<Disassembly> disassemble(int fd, const DisassemblyQuestion& question) override {
    return direct_.disassemble(fd, question);
  }
  Result<std::vector<DemangledName>> demangle(std::span<const std::string> mangled) override {
    return direct_.demangle(mangled);
  }

 private:
  DirectModuleReader direct_;
};

}  // namespace flamed::symbolizer
