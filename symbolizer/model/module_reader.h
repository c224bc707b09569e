// SPDX-License-Identifier: Apache-2.0
//
// ModuleReader: the interface of all code that parses untrusted files: descriptors in, values out, so that an
// unprivileged worker process can implement it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbolizer/model/container_engine.h"
#include "symbolizer/model/container_file.h"
#include "symbolizer/model/demangled_name.h"
#include "symbolizer/model/disassembly.h"
#include "symbolizer/model/elf_facts.h"
#include "symbolizer/model/elf_symbols.h"
#include "symbolizer/model/hotspot_module.h"
#include "symbolizer/model/hotspot_names.h"
#include "symbolizer/model/jit_file.h"
#include "symbolizer/model/module_files.h"
#include "symbolizer/model/runtime_module.h"
#include "symbolizer/model/source_chain.h"
#include "symbolizer/model/sourced_rows.h"
#include "symbolizer/model/symbol_table.h"
#include "unwinder/row.h"

namespace flamed::symbolizer {

struct ProcessMemory {
  int fd = -1;             ///< its /proc/PID/mem
  std::uint32_t user = 0;  ///< that the process has
};

/// Any thread; calls may overlap. An Error with code EAGAIN says nothing about the file: the reading process was not
/// available, and a retry may succeed. Other errors say why the file can't be read.
class ModuleReader {
 public:
  virtual ~ModuleReader() = default;
  /// The kind of the file, and its references to debug files.
  virtual Result<ElfFacts> inspect(int fd) = 0;
  /// The functions of a module.
  virtual Result<ElfSymbols> read_symbols(const ModuleFiles& files) = 0;
  /// One chain for each *file offset* in the module, in order.
  virtual Result<std::vector<SourceChain>> locate(const ModuleFiles& files, std::span<const std::uint64_t> offsets) = 0;
  /// By file offset. A file without unwind information, or for another architecture, gives no rows and is not an error;
  /// one that is no ELF file is an error with code ENOEXEC.
  /// `kept`: rows in a file, see kept_rows.h, which may be used if they are still those of `fd`; -1: none.
  virtual Result<SourcedRows> read_unwind_rows(int fd, int kept) = 0;
  /// One for each file offset in the module, in order: the rows of the function there alone, from its first byte to its
  /// last. No rows: nothing is known of a function there.
  virtual Result<std::vector<unwinder::UnwindRows>> read_function_rows(int fd,
                                                                       std::span<const std::uint64_t> offsets) = 0;
  /// The functions in a just-in-time compiler's file, by address in its process; if several had the same address, the
  /// last one counts.
  virtual Result<SymbolTable> read_jit_symbols(int fd, JitFormat format) = 0;
  /// Is the file a managed runtime? An error: it is one, and why its processes can't be read.
  virtual Result<std::optional<RuntimeModule>> find_runtime(int fd) = 0;
  /// Code objects in the memory of a process: one answer for each, in order. At most kMostRuntimeCodes. What can't be
  /// read there any more is read from its copy, if there is one; then there need be no `memory.fd`.
  virtual Result<std::vector<RuntimeAnswer>> read_runtime_functions(ProcessMemory memory, const RuntimeProcess& process,
                                                                    std::span<const RuntimeCode> codes,
                                                                    std::span<const CopiedCode> copies) = 0;
  /// Is the file a HotSpot JVM, and where does it keep its code? `memory` is the /proc/PID/mem of a process that has it
  /// mapped. An error: it is one, and why its processes can't be read; with code EBUSY it is still being loaded.
  virtual Result<std::optional<HotSpotModule>> find_hotspot(int fd, ProcessMemory memory,
                                                            const HotSpotMapping& mapping) = 0;
  /// The code of a JVM by a process's memory, see runtimes::read_hotspot_code().
  virtual Result<runtimes::HotSpotCode> read_hotspot_code(ProcessMemory memory, const runtimes::HotSpotLayout& layout,
                                                          std::uint64_t base,
                                                          std::span<const runtimes::HotSpotKnownBlob> known) = 0;
  /// Which methods run at addresses of a JVM's code, by a process's memory.
  virtual Result<HotSpotNames> read_hotspot_names(ProcessMemory memory, const runtimes::HotSpotLayout& layout,
                                                  std::uint64_t base, const HotSpotQuestion& question) = 0;
  /// The names of the container with this id. Empty if the file does not say them.
  virtual Result<ContainerNames> read_container(int fd, ContainerFormat format, const std::string& id) = 0;
  /// The names of the container with this id, in the answer that comes on a connection, see read_engine_answer(). Empty
  /// if the engine does not know it.
  virtual Result<ContainerNames> read_engine_answer(int connection, EngineProtocol protocol, const std::string& id) = 0;
  /// The instructions of functions of a module. A function whose bytes are not code of the file has none.
  virtual Result<Disassembly> disassemble(int fd, const DisassemblyQuestion& question) = 0;
  /// One for each name, in order.
  virtual Result<std::vector<DemangledName>> demangle(std::span<const std::string> mangled) = 0;
};

}  // namespace flamed::symbolizer
