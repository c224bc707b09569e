// SPDX-License-Identifier: Apache-2.0
//
// JitSymbols: the functions that processes' just-in-time compilers have named so far, from the files held open.
// Any thread, and calls may overlap: a thread that needs a file which another is just reading waits for that one file
// only. The reader and the clock must outlive it.
//
// These files grow while their process runs, so they are looked at again when asked for, and read again when they have
// changed: whole, because what is new may stand anywhere in the order of addresses and take the place of what was
// known.
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
    /// Of all tables together; the least recently used go first. A table larger than this alone serves the call that
    /// read it and isn't kept.
    std::size_t table_budget_bytes = std::size_t{64} << 20;
    /// A file is looked at no more often than this.
    std::int64_t look_again_after_ns = kNsPerSecond;
    /// A file that changes all the time is read again only after this many times the time that reading it took, which
    /// bounds the share of a CPU that it can cost.
    std::int64_t rest_after_reading = 10;
    /// A file that couldn't be read is tried again after this even if it has not changed: the worker may have died.
    std::int64_t retry_failed_after_ns = 10 * kNsPerSecond;
  };

  JitSymbols(ModuleReader& reader, const Clock& clock);
  JitSymbols(ModuleReader& reader, const Clock& clock, Options options);

  using TablePtr = std::shared_ptr<const SymbolTable>;

  /// What the files of one process say by now.
  struct View {
    std::vector<TablePtr> tables;  ///< of the file that was written last first
    std::string why_none;          ///< why an address has no name; for people

    /// The name is good for as long as the View.
    [[nodiscard]] std::optional<SymbolTable::Found> find(std::uint64_t address) const;
  };
  [[nodiscard]] View view(const JitFiles& files);

  struct Stats {
    std::size_t tables = 0;
    std::size_t table_bytes = 0;
    std::uint64_t loads = 0;         ///< files read, well or not
    std::uint64_t failed_loads = 0;  ///< of these, not
    std::uint64_t evictions = 0;     ///< tables dropped for the budget
    std::int64_t load_ns = 0;        ///< time spent in reading
  };
  [[nodiscard]] Stats stats() const;

 private:
  /// The state of a file when it was last looked at, and when its table was read.
  struct Version {
    std::int64_t size = -1;
    std::int64_t modified_ns = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  /// One file. `mutex` guards all but `bytes` and `last_used`, and is held while the file is read.
  struct Slot {
    std::mutex mutex;
    std::weak_ptr<const JitFile> file;
    TablePtr table;       ///< null until one was read
    std::string problem;  ///< of the last reading; empty when it went well
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

  mutable std::mutex mutex_;  ///< guards what follows; not held while a file is read
  std::unordered_map<const JitFile*, SlotPtr> slots_;
  std::uint64_t uses_ = 0;
  Stats stats_;
};

}  // namespace flamed::symbolizer
