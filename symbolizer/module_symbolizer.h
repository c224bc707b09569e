// SPDX-License-Identifier: Apache-2.0
//
// ModuleSymbolizer: names frames from the symbols of the kernel, the vdso and the files that modules hold open.
// Any thread, and calls may overlap: a thread that needs a module which another is just reading waits for that one
// module only. Everything given to the constructor must outlive it.
//
// It keeps the tables of modules it has read within a budget, and nothing per address: put a CachingSymbolizer before
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/jit_symbols.h"
#include "symbolizer/kernel_symbols.h"
#include "symbolizer/module.h"
#include "symbolizer/module_reader.h"
#include "symbolizer/symbol.h"

namespace flamed::symbolizer {

class ModuleSymbolizer final : public Symbolizer {
 public:
  struct Options {
    /// Of all tables together; the least recently used go first. A table larger than this alone serves the call that
    /// read it and isn't kept.
    std::size_t table_budget_bytes = std::size_t{64} << 20;
    /// A file that couldn't be read is tried again after this: the worker may have died, memory been short.
    std::int64_t retry_failed_after_ns = 60 * kNsPerSecond;
  };

  ModuleSymbolizer(const Modules& modules, KernelSymbols& kernel, ModuleReader& reader, const Clock& clock);
  ModuleSymbolizer(const Modules& modules, KernelSymbols& kernel, ModuleReader& reader, const Clock& clock,
                   Options options);

  std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) override;

  struct Stats {
    std::size_t tables = 0;
    std::size_t table_bytes = 0;
    std::uint64_t loads = 0;         ///< files read, well or not
    std::uint64_t failed_loads = 0;  ///< of these, not
    std::uint64_t evictions = 0;     ///< tables dropped for the budget
    std::int64_t load_ns = 0;        ///< time spent in reading
  };
  [[nodiscard]] Stats stats() const;
  /// Of what just-in-time compilers wrote; it has a budget of the same size of its own.
  [[nodiscard]] JitSymbols::Stats jit_stats() const { return jit_.stats(); }

 private:
  using Table = Result<ElfSymbols>;
  using TablePtr = std::shared_ptr<const Table>;

  struct Entry {
    std::weak_ptr<const Module> module;  ///< tells a module from one that replaced it under the same id
    std::shared_future<TablePtr> table;
    std::uint64_t load = 0;       ///< which load this is, so that a late one doesn't touch its successor
    std::uint64_t last_used = 0;  ///< in uses_
    std::size_t bytes = 0;        ///< 0 until loaded
    std::optional<MonotonicTime> failed_at;
  };

  /// Frames [i] for i in `group` lie in one module.
  using Group = std::span<const std::size_t>;
  using Chains = std::vector<SymbolChainPtr>;
  void name_group(std::span<const Frame> frames, Group group, Chains& chains);
  void name_kernel(std::span<const Frame> frames, Group group, Chains& chains);
  void name_elf(std::span<const Frame> frames, Group group, const Table& table, const std::string& module,
                SymbolKind kind, Chains& chains);

  void name_jit(std::span<const Frame> frames, Group group, const Module& module, Chains& chains);

  /// One for each name; empty ones where the reader failed.
  std::vector<DemangledName> demangle(std::span<const std::string> mangled);

  TablePtr table_of(const ModulePtr& module);
  [[nodiscard]] TablePtr load(const Module& module);
  void settle(ModuleId id, std::uint64_t load, const TablePtr& table, std::int64_t took_ns);
  void evict_locked();
  const Table& vdso();

  const Modules& modules_;
  KernelSymbols& kernel_;
  ModuleReader& reader_;
  const Clock& clock_;
  const Options options_;
  JitSymbols jit_;

  std::once_flag vdso_once_;
  TablePtr vdso_;

  mutable std::mutex mutex_;  ///< guards what follows; not held while a file is read
  std::unordered_map<ModuleId, Entry> entries_;
  std::uint64_t uses_ = 0;
  Stats stats_;
};

}  // namespace flamed::symbolizer
