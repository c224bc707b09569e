// SPDX-License-Identifier: Apache-2.0
//
// ModuleSymbolizer: names frames from the symbols of the kernel, the vdso, the modules' open files, and their separate
// debug files. Any thread, and calls may overlap: a thread that needs a module which another thread is reading waits
// only for that module. The constructor's arguments must outlive it.
//
// It caches the tables of modules within a budget, but nothing per address: put a CachingSymbolizer before it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "base/machine_code.h"
#include "base/result.h"
#include "symbolizer/jit/jit_symbols.h"
#include "symbolizer/model/module.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/model/symbol.h"
#include "symbolizer/names/debian_packages.h"
#include "symbolizer/names/debug_file_finder.h"
#include "symbolizer/names/kernel_symbols.h"
#include "symbolizer/names/runtime_functions.h"

namespace flamed::symbolizer {

/// Why an address of a stripped file has no name.
inline constexpr const char* kOnlyDynamicSymbols =
    "no symbol covers this address (stripped? only dynamic symbols are left)";

class ModuleSymbolizer final : public Symbolizer {
 public:
  struct Options {
    /// For all tables together; the least recently used are dropped first. A table larger than this serves only the
    /// call that read it and isn't kept.
    std::size_t table_budget_bytes = std::size_t{64} << 20;
    /// A file that couldn't be read is tried again after the first of these times, then after the second, and from then
    /// on after the last: memory may have been short. If the reader was not available (ModuleReader), it is tried again
    /// at once.
    std::array<std::int64_t, 3> retry_failed_after_ns = {5 * kNsPerSecond, 30 * kNsPerSecond, 300 * kNsPerSecond};
    /// How often to check for a new debug file of a module without symbols or lines.
    std::int64_t look_again_after_ns = 60 * kNsPerSecond;
    /// Debug files held open with the tables; those of the least recently used modules are closed first.
    std::size_t max_open_debug_files = 256;
    /// For advice on missing names. Null: no package is named.
    DebianPackages* packages = nullptr;
    bool asks_debug_servers = false;
    /// Null: no frame is in kRuntimeModule.
    const RuntimeFunctions* runtime_functions = nullptr;
  };

  ModuleSymbolizer(Modules& modules, KernelSymbols& kernel, ModuleReader& reader, DebugFileFinder& debug_files,
                   const Clock& clock);
  ModuleSymbolizer(Modules& modules, KernelSymbols& kernel, ModuleReader& reader, DebugFileFinder& debug_files,
                   const Clock& clock, Options options);

  std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) override;
  /// The same without inlined calls and lines: debug information is not read.
  std::vector<SymbolChainPtr> name_functions(std::span<const Frame> frames);
  /// The frame of the first byte of its function, if that has the same name and its module's table is there already;
  /// otherwise the frame itself. Reads nothing.
  std::vector<Frame> functions_of(std::span<const Frame> frames);
  /// Modules whose debug file has appeared.
  std::vector<ModuleId> renewed(std::span<const ModuleId> modules) override;

  /// The code at places in a module, from the very file that the names are from. Waits for the reader.
  MachineCode code_at(const CodeQuestion& question);

  /// Frees the tables and debug files of closed modules. Call it after they were closed. Returns the freed bytes.
  std::size_t free_closed();

  static constexpr std::size_t kSources = 6;  ///< values of ElfSymbols::Source
  struct Stats {
    std::size_t tables = 0;
    std::size_t table_bytes = 0;
    std::uint64_t loads = 0;                           ///< files read, with or without success
    std::uint64_t failed_loads = 0;                    ///< of these, without success
    std::uint64_t evictions = 0;                       ///< tables dropped for the budget
    std::int64_t load_ns = 0;                          ///< time spent reading
    std::array<std::uint64_t, kSources> loads_from{};  ///< by ElfSymbols::Source, of those read with success
    std::uint64_t debug_files_found = 0;               ///< loads with a separate debug file
    std::uint64_t debug_files_missed = 0;              ///< loads that needed one and found none
    std::uint64_t located = 0;                         ///< addresses whose source lines were looked up
    std::uint64_t failed_locates = 0;                  ///< failed look-ups of source lines
    std::int64_t locate_ns = 0;
  };
  [[nodiscard]] Stats stats() const;
  /// Of perf maps and jitdumps, which have a separate budget of the same size.
  [[nodiscard]] JitSymbols::Stats jit_stats() const { return jit_.stats(); }

 private:
  /// The data read from a module, and the open files for reading more. Immutable.
  struct Loaded {
    Result<ElfSymbols> symbols;
    ElfFacts facts{};
    DebugFiles debug{};
    FileOwner owner{};     ///< of the module's file
    std::string remedy{};  ///< what would give functions without a symbol their names, for people
    [[nodiscard]] bool has_lines() const;
    [[nodiscard]] bool may_improve() const;
    [[nodiscard]] std::size_t bytes() const;
  };
  using LoadedPtr = std::shared_ptr<const Loaded>;

  /// Consecutive failures of one file. A file that takes its reader ten seconds must not cost every query as much.
  struct Failures {
    std::optional<MonotonicTime> retry_at;  ///< none: the last reading succeeded
    std::size_t count = 0;                  ///< failures caused by the file
  };

  struct Entry {
    std::weak_ptr<const Module> module;  ///< to detect another module with the same id
    std::shared_future<LoadedPtr> loaded;
    std::uint64_t load = 0;       ///< number of this load, so that a late one doesn't change its successor
    std::uint64_t last_used = 0;  ///< in uses_
    std::size_t bytes = 0;        ///< 0 without a table: not loaded yet, or dropped for the budget
    std::size_t debug_files = 0;  ///< held open
    Failures load_failures;
    Failures line_failures;
    bool pending = false;  ///< a debug file is being fetched
    /// For a module that needs a debug file; outlives the table, because answers do.
    struct Watch {
      ElfFacts facts;
      FileOwner owner;
      bool has_debug, has_alternate;
      MonotonicTime looked_at;
    };
    std::optional<Watch> watch;
  };

  /// frames[i] for i in `group` are in one module.
  using Group = std::span<const std::size_t>;
  using Chains = std::vector<SymbolChainPtr>;
  enum class Depth : std::uint8_t { kFunctions, kLines };
  Chains name(std::span<const Frame> frames, Depth depth);
  void name_group(std::span<const Frame> frames, Group group, Depth depth, Chains& chains);
  /// `place` is the text for frames without names.
  static void name_closed(std::span<const Frame> frames, Group group, const Module& closed, std::string_view place,
                          const std::string& module, Chains& chains);
  void name_kernel(std::span<const Frame> frames, Group group, Chains& chains);
  /// `file` is -1 if there is no file.
  void name_elf(std::span<const Frame> frames, Group group, const Loaded& loaded, int file, const std::string& module,
                SymbolKind kind, Depth depth, Chains& chains);
  struct Lines {
    std::vector<SourceChain> chains;  ///< one for each frame of the group; empty if there are no lines
    bool pending = false;             ///< there may be lines the next time
  };
  Lines locate(std::span<const Frame> frames, Group group, const Loaded& loaded, int file);
  void record_failure(Failures& failures, const Error& error);

  void name_jit(std::span<const Frame> frames, Group group, const Module& module, Chains& chains);

  /// One for each name. Empty if the reader was not available: then the shown names must not be cached.
  std::vector<DemangledName> demangle(std::span<const std::string> names);

  LoadedPtr loaded(const ModulePtr& module);
  /// Null: it was not read yet, or is being read.
  LoadedPtr loaded_already(ModuleId id);
  [[nodiscard]] LoadedPtr load(const ModulePtr& module);
  [[nodiscard]] DebugFiles find_debug_files(const Module& module, const FileOwner& owner, const ElfFacts& facts);
  [[nodiscard]] std::string remedy_for(const Module& module, const ElfFacts& facts, bool is_fetched) const;
  void settle(ModuleId id, std::uint64_t load, const LoadedPtr& loaded, std::int64_t took_ns);
  void drop_locked(Entry& entry);
  void evict_locked();
  const Loaded& vdso();
  void find_again_locked(ModuleId id, Entry& entry);

  Modules& modules_;
  KernelSymbols& kernel_;
  ModuleReader& reader_;
  DebugFileFinder& debug_files_;
  const Clock& clock_;
  const Options options_;
  JitSymbols jit_;

  std::once_flag vdso_once_;
  LoadedPtr vdso_;

  mutable std::mutex mutex_;  ///< guards the members below; not held while a file is read
  std::unordered_map<ModuleId, Entry> entries_;
  std::uint64_t uses_ = 0;
  std::size_t open_debug_files_ = 0;
  Stats stats_;
};

}  // namespace flamed::symbolizer
