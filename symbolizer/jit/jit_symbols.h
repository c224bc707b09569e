// SPDX-License-Identifier: Apache-2.0
//
// JitSymbols: the functions named by processes' just-in-time compilers so far, from the open files. Any thread, and
// calls may overlap: a thread that needs a file which another thread is reading waits only for that file. The reader
// and the clock must outlive it.
//
// These files grow while their process runs, so each use checks them, and reads them again if they have changed: the
// whole file, because new entries may have any address and replace old ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "symbolizer/model/jit_file.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/model/symbol_table.h"

namespace flamed::symbolizer {

class JitSymbols {
 public:
  struct Options {
    /// For all tables together; the least recently used are dropped first. A table larger than this serves only the
    /// call that read it and isn't kept.
    std::size_t table_budget_bytes = std::size_t{64} << 20;
    /// The shortest time between checks of a file.
    std::int64_t look_again_after_ns = kNsPerSecond;
    /// A file that changes all the time is read again only after this many times the time of the last reading, which
    /// bounds its share of a CPU.
    std::int64_t rest_after_reading = 10;
    /// A file that couldn't be read is tried again after this time even if it has not changed: the worker may have
    /// died.
    std::int64_t retry_failed_after_ns = 10 * kNsPerSecond;
  };

  JitSymbols(ModuleReader& reader, const Clock& clock);
  JitSymbols(ModuleReader& reader, const Clock& clock, Options options);

  using TablePtr = std::shared_ptr<const SymbolTable>;

  /// The current tables of one process.
  struct View {
    std::vector<TablePtr> tables;  ///< of the most recently written file first
    std::string why_none;          ///< why an address has no name; for people

    /// The name is valid as long as the View.
    [[nodiscard]] std::optional<SymbolTable::Found> find(std::uint64_t address) const;
  };
  [[nodiscard]] View view(const JitFiles& files);

  struct Stats {
    std::size_t tables = 0;
    std::size_t table_bytes = 0;
    std::uint64_t loads = 0;         ///< files read, with or without success
    std::uint64_t failed_loads = 0;  ///< of these, without success
    std::uint64_t evictions = 0;     ///< tables dropped for the budget
    std::int64_t load_ns = 0;        ///< time spent reading
  };
  [[nodiscard]] Stats stats() const;

 private:
  /// The state of a file, to detect changes.
  struct Version {
    std::int64_t size = -1;
    std::int64_t modified_ns = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  /// One file. `mutex` guards all but `bytes` and `last_used`, and is held while the file is read.
  struct Slot {
    std::mutex mutex;
    std::weak_ptr<const JitFile> file;
    TablePtr table;       ///< null until the first successful reading
    std::string problem;  ///< of the last reading; empty after success
    Version seen, read;
    std::optional<std::int64_t> looked_at_ns;
    std::int64_t read_again_at_ns = 0;

    std::size_t bytes = 0;        ///< guarded by JitSymbols::mutex_
    std::uint64_t last_used = 0;  ///< likewise, in uses_
  };
  using SlotPtr = std::shared_ptr<Slot>;

  [[nodiscard]] SlotPtr slot_of(const JitFilePtr& file);
  void look(const JitFile& file, const SlotPtr& slot);
  void read(const JitFile& file, const SlotPtr& slot);
  void settle(const SlotPtr& slot, std::size_t bytes, bool failed, std::int64_t took_ns);
  void evict_locked();

  ModuleReader& reader_;
  const Clock& clock_;
  const Options options_;

  mutable std::mutex mutex_;  ///< guards the members below; not held while a file is read
  std::unordered_map<const JitFile*, SlotPtr> slots_;
  std::uint64_t uses_ = 0;
  Stats stats_;
};

}  // namespace flamed::symbolizer
