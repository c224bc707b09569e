// SPDX-License-Identifier: Apache-2.0
//
// ModuleReader: everything that interprets bytes which other users chose, behind one interface of descriptors in,
// values out, so that an unprivileged worker process can do it (design decision 5).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "symbolizer/model/demangled_name.h"
#include "symbolizer/model/elf_facts.h"
#include "symbolizer/model/elf_symbols.h"
#include "symbolizer/model/jit_file.h"
#include "symbolizer/model/module_files.h"
#include "symbolizer/model/source_chain.h"
#include "symbolizer/model/symbol_table.h"
#include "unwinder/row.h"

namespace flamed::symbolizer {

/// Any thread; calls may overlap. An Error with code EAGAIN says nothing of the file: the process that reads
/// wasn't there, and to ask again may well help. Any other tells why the file can't be read.
class ModuleReader {
 public:
  virtual ~ModuleReader() = default;
  /// What kind of file this is and where else there may be more of it.
  virtual Result<ElfFacts> inspect(int fd) = 0;
  /// The functions of a module.
  virtual Result<ElfSymbols> read_symbols(const ModuleFiles& files) = 0;
  /// One chain for each *file offset* in the module, in order.
  virtual Result<std::vector<SourceChain>> locate(const ModuleFiles& files, std::span<const std::uint64_t> offsets) = 0;
  /// By file offset. A file without unwind information, or for another architecture, gives no rows and is no error.
  virtual Result<unwinder::UnwindRows> read_unwind_rows(int fd) = 0;
  /// The functions that a just-in-time compiler wrote down, by address in its process; where two of them had an address
  /// one after the other, the last one counts.
  virtual Result<SymbolTable> read_jit_symbols(int fd, JitFormat format) = 0;
  /// One for each name, in order.
  virtual Result<std::vector<DemangledName>> demangle(std::span<const std::string> mangled) = 0;
};

/// As long as one lives, what its thread asks readers for is work in the background: nobody waits for it, it takes no
/// place from those who do, and the CPU budget is charged with it.
class BackgroundReading {
 public:
  BackgroundReading() : was_on_(std::exchange(on_, true)) {}
  ~BackgroundReading() { on_ = was_on_; }
  BackgroundReading(const BackgroundReading&) = delete;
  BackgroundReading& operator=(const BackgroundReading&) = delete;

  [[nodiscard]] static bool is_on() { return on_; }

 private:
  static inline thread_local bool on_ = false;
  const bool was_on_;
};

}  // namespace flamed::symbolizer
