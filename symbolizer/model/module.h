// SPDX-License-Identifier: Apache-2.0
//
// Module: the source of mapped code. Its file is open as long as a process has it mapped and a little longer; after
// that only the names of the addresses in stored stacks are kept.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/handle.h"
#include "base/identity.h"
#include "symbolizer/model/jit_file.h"
#include "symbolizer/model/kept_names.h"

namespace flamed::symbolizer {

enum class ModuleKind : std::uint8_t {
  kKernel,
  kVdso,
  kFile,       ///< a mapped file
  kAnonymous,  ///< one process's memory without a file: JIT code, or an address that no mapping covers
};

/// An immutable value: when the file has been opened, the table replaces the whole Module. A holder of the shared_ptr
/// keeps the descriptor open.
struct Module {
  ModuleId id;
  ModuleKind kind = ModuleKind::kFile;
  std::string path;  ///< as the mapping named it, in the process's mount namespace; "[kernel]", "[vdso]", "[anon]"
  ProcessId owner;   ///< of kAnonymous: the memory's process
  Fd file;           ///< of kFile: the mapped file itself, readable, even if it was deleted or replaced since
  std::string why_no_file;  ///< of kFile without a descriptor: the reason, for people ("not opened yet", "deleted
                            ///< before ...")
  JitFilesPtr jit{};        ///< of kAnonymous: its perf map and jitdump; null: not looked for yet
  KeptNamesPtr names{};     ///< of a closed one: the names that are kept

  [[nodiscard]] bool is_closed() const { return names != nullptr; }
};
using ModulePtr = std::shared_ptr<const Module>;

/// The symbolizer's interface to modules. Any thread.
class Modules {
 public:
  virtual ~Modules() = default;
  /// Null if no stored stack has the module any more.
  [[nodiscard]] virtual ModulePtr find(ModuleId id) const = 0;
  /// A process that has the module mapped, or had it at its last sample. 0: not known.
  [[nodiscard]] virtual std::int32_t process_of(ModuleId /*id*/) const { return 0; }
  /// Opens the file of a closed module once more, if it is unchanged, to read better names. True: it was requested.
  virtual bool reopen(ModuleId /*id*/) { return false; }
};

}  // namespace flamed::symbolizer
