// SPDX-License-Identifier: Apache-2.0
//
// Module: something that code was mapped from. Its file is held open for as long as a process has it mapped and a
// little longer; from then on the addresses that stored stacks have in it are known by their names.
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
  ProcessId owner;   ///< of kAnonymous: whose memory
  Fd file;           ///< of kFile: the file itself, readable, even when it was deleted or replaced since
  std::string why_no_file;  ///< of kFile without descriptor: why, for people ("not opened yet", "deleted before ...")
  JitFilesPtr jit{};        ///< of kAnonymous: the files that name its code; null: not looked for yet
  KeptNamesPtr names{};     ///< of one that is closed: what is left of its files, and all that will be

  [[nodiscard]] bool is_closed() const { return names != nullptr; }
};
using ModulePtr = std::shared_ptr<const Module>;

/// Where the symbolizer finds modules. Any thread.
class Modules {
 public:
  virtual ~Modules() = default;
  /// Null when nothing stored names the module any more.
  [[nodiscard]] virtual ModulePtr find(ModuleId id) const = 0;
  /// A process that has the module mapped, or had it when a sample was last seen there. 0: not known.
  [[nodiscard]] virtual std::int32_t process_of(ModuleId /*id*/) const { return 0; }
  /// There is more to be known of a closed module: has its file opened once more, where it still is what it was, for
  /// the names to be read anew. True: it is on its way.
  virtual bool reopen(ModuleId /*id*/) { return false; }
};

}  // namespace flamed::symbolizer
