// SPDX-License-Identifier: Apache-2.0
//
// UnwindPublisher: fills the unwind tables, within a budget: with the mappings of processes that ran at the start or
// were sampled, and with the rows of their modules.
//
// All processes that map the same file share its rows. When the budget is used up, the least recently sampled module is
// evicted for one that was sampled since, one at a time; modules in use and the vdso stay, and a file that many
// processes have run, such as libc or a compiler, goes only after all others. Data that the kernel program may be
// reading never changes: a new version is written elsewhere, one word is switched over, and the old place is reused
// after a grace period.
//
// Ingest publishes processes, the `modules` thread rows; any thread may read stats(). Must not outlive its maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "daemon/unwind/code_place.h"
#include "daemon/unwind/run_allocator.h"
#include "daemon/unwind/unwind_maps.h"
#include "symbolizer/process/process.h"
#include "unwinder/row.h"
#include "unwinder/rule_table.h"
#include "unwinder/walk.h"

namespace flamed::daemon {

/// Where a process has a managed runtime: see flamed_process.
struct RuntimePlace {
  std::uint32_t layout = 0;
  std::uint64_t base = 0;
};

class UnwindPublisher {
 public:
  /// `budget_bytes` is for rows, 4 bytes each; the other tables have fixed sizes.
  UnwindPublisher(UnwindMaps& maps, std::size_t budget_bytes, const Clock& clock);
  ~UnwindPublisher();

  static constexpr std::string_view kFramePointersAlone = "user stacks are walked by frame pointers alone";
  /// Logs why there are no tables, and the consequence.
  static void log_no_tables(const std::string& why);

  /// Do the process's mappings fit into the tables? Otherwise none of them are entered.
  static bool has_place_for(const symbolizer::Process& process);

  // -- Ingest ---------------------------------------------------------------------------------------------------------

  /// Enters the process with its current mappings, or replaces its entry.
  void publish(const symbolizer::Process& process, const RuntimePlace& runtime = {}, const CodePlacePtr& code = {});
  /// Is there enough room for processes that may never be sampled?
  [[nodiscard]] bool has_room_to_spare() const;
  /// A no-op if the pid is another process's by now.
  void remove(const ProcessId& process);
  /// Has `pid` been entered and not removed?
  [[nodiscard]] bool has(std::int32_t pid) const;

  /// The walk of a sample that stands for `cpu_ns` met a module without rows. True if they should be built: once they
  /// are worth it (is_worth_at_once(), or a few times as much CPU time was sampled there as building is likely to
  /// take), at most once in a while, and more and more rarely if there was no room for them. `code_bytes`: the size of
  /// a mapping of it, if the process may not be in the tables.
  [[nodiscard]] bool should_build(ModuleId module, std::int64_t cpu_ns, std::uint64_t code_bytes = 0);
  /// Should rows be built at the first miss? For little code always, in the first half minute for all.
  [[nodiscard]] bool is_worth_at_once(std::uint64_t code_bytes) const;
  /// Were its rows requested by should_build() a moment ago?
  [[nodiscard]] bool is_being_built(ModuleId module) const;

  /// The code at a place in a module's file, as the kernel program finds it now.
  [[nodiscard]] unwinder::Code find_code(ModuleId module, std::uint64_t file_offset);

  /// The same of an address in code that a process has made at run time.
  [[nodiscard]] unwinder::Code find_code(const CodePlace& place, std::uint64_t address);
  /// Frees rows of publish_code(). False: a process still has them.
  bool forget_code(ModuleId rows);
  /// The kernel program reports the next code without rows once more.
  void listen_for_code(ModuleId rows);

  /// Requests the rows of the functions at these places of a module whose rows are not in the tables, for find_code().
  /// False if all of them are known, or there is no room.
  bool want_functions(ModuleId module, std::span<const std::uint64_t> file_offsets);

  /// Frees modules that are not in `live`, which is sorted.
  void retain(std::span<const ModuleId> live);

  // -- The `modules` thread ------------------------------------------------------------------------------------------

  enum class Outcome : std::uint8_t {
    kDone,
    kWait,    ///< an older module is being evicted: try again after kGraceNs
    kNoRoom,  ///< all modules in the tables are in use or were sampled since, or the rows alone exceed the budget
  };
  /// Counts the time for reading a file and building its rows, for stats().
  void count_build(std::int64_t took_ns);
  /// Counts a file whose rows had been kept, likewise.
  void count_reuse();

  /// Are the module's rows in the tables, or is it known to have none?
  [[nodiscard]] bool is_ready(ModuleId module) const;

  /// The places of want_functions() since the last call.
  [[nodiscard]] std::vector<std::uint64_t> take_wanted_functions(ModuleId module);
  /// `rows` has one for each place, see ModuleReader::read_function_rows().
  void add_functions(ModuleId module, std::span<const std::uint64_t> file_offsets,
                     std::span<const unwinder::UnwindRows> rows);

  /// The file could not be read. True: request its rows again when a sample misses them, since the cause may be gone by
  /// then. False: that was the last attempt.
  bool may_try_again(ModuleId module);

  /// `rows` by file offset. Without any row the module's code is walked by frame pointers.
  Outcome publish_rows(ModuleId module, const unwinder::UnwindRows& rows);

  /// Frees the memory of slabs without rows.
  void drop_empty_slabs();

  // -- The thread that reads code which processes have made at run time ----------------------------------------------

  /// Rows by CodePlace::Area::offset, for CodePlace::rows. They never change: code that has changed gets new ones.
  /// kNoModule: there is no room.
  ModuleId publish_code(const unwinder::UnwindRows& rows);

  /// After this time a place that a run of the kernel program may have read is free: a run that takes longer discards
  /// its stack.
  static constexpr std::int64_t kGraceNs = FLAMED_GRACE_NS;

  struct Stats {
    std::size_t processes = 0;
    std::size_t mappings = 0;
    std::size_t modules = 0;  ///< with rows
    std::size_t rows = 0;
    std::size_t row_bytes = 0;   ///< of the budget
    std::size_t slab_bytes = 0;  ///< kernel memory of rows, in whole slabs
    std::size_t budget_bytes = 0;
    std::size_t rules = 0;
    std::uint64_t builds = 0;   ///< files whose rows were built, again after evictions
    std::int64_t build_ns = 0;  ///< total time for them
    std::uint64_t reuses = 0;   ///< files whose rows had been kept from before
    std::uint64_t evictions = 0;
    std::uint64_t refused_processes = 0;  ///< no room for their mappings
    std::uint64_t refused_modules = 0;    ///< no room for their rows
    std::uint64_t dense_pages = 0;        ///< with more rows than a search covers: treated as unsupported
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Run {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  struct Placement;
  /// Code from the key in ModuleEntry::functions on.
  struct Function {
    std::uint64_t end = 0;
    unwinder::UnwindRows rows;  ///< none: nothing is known of it
  };
  struct ModuleEntry {
    std::uint32_t index = 0;
    std::uint32_t processes = 0;  ///< whose mappings refer to the index
    std::uint32_t starts = 0;     ///< processes that have had it so far
    bool ready = false;
    Run pages;
    std::vector<Run> rows;
    std::size_t row_count = 0;
    std::uint64_t code_bytes = 0;                   ///< the largest mapping of it
    std::int64_t missed_ns = 0;                     ///< CPU time of samples whose walk ended here for lack of rows
    MonotonicTime asked_at{};                       ///< when rows were last requested
    unsigned refusals = 0;                          ///< in a row
    unsigned failures = 0;                          ///< of reading the file
    std::vector<std::uint64_t> wanted_functions{};  ///< file offsets
    /// Rows of single functions, by their first byte, while the module's own are not in the tables.
    std::map<std::uint64_t, Function> functions{};
  };
  struct ProcessEntry {
    std::uint64_t start_ticks = 0;
    std::uint64_t exec_id = 0;
    Run mappings;
    std::vector<ModuleId> modules;
  };
  struct Retired {
    MonotonicTime at;
    RunAllocator* from;
    Run run;
  };

  ModuleEntry* enter_module(ModuleId id);
  void append_mapping(const symbolizer::Mapping& mapping, const CodePlace* code, ProcessEntry& entry, bool is_new,
                      std::vector<flamed_mapping>& to);
  std::uint32_t unread_index();
  void leave_modules(const ProcessEntry& process);
  void retire(RunAllocator& from, Run run);
  void reclaim();
  void unpublish(ModuleEntry& entry);
  void forget(std::unordered_map<ModuleId, ModuleEntry>::iterator module);
  void forget_unmapped();
  [[nodiscard]] std::uint32_t last_sampled(const ModuleEntry& entry) const;
  /// The module with the smallest one is let go of first.
  using Importance = std::pair<bool, std::uint32_t>;
  [[nodiscard]] Importance importance(const ModuleEntry& entry) const;
  bool evict_one(const ModuleEntry& in_favour_of);
  [[nodiscard]] bool is_room_coming() const;
  Outcome refuse(ModuleEntry& entry);
  static const Function* function_at(const ModuleEntry& entry, std::uint64_t file_offset);
  std::optional<Outcome> place(ModuleEntry& entry, const std::vector<unwinder::Rule>& rules, Placement& placement);
  void give_back(Placement& placement);
  [[nodiscard]] Status fill(const unwinder::UnwindRows& rows, const Placement& placement);
  [[nodiscard]] std::vector<std::uint16_t> translate_rules(const std::vector<unwinder::Rule>& rules);

  UnwindMaps& maps_;
  const std::size_t budget_bytes_;
  const Clock& clock_;

  const MonotonicTime began_;

  /// Held from the choice of places until their slabs are made and written, or dropped: two threads publish rows. One
  /// would write into a slab that the other one drops, or both would make the same one. Taken before `mutex_`, and
  /// never by ingest, since making a slab takes 10 ms.
  std::mutex slabs_mutex_;
  mutable std::mutex mutex_;  ///< guards the members below
  std::uint32_t last_edition_ = 0;
  std::uint32_t last_code_;                ///< ModuleId of the last publish_code()
  std::optional<std::uint32_t> unread_{};  ///< index of the module of code that has not been read
  RunAllocator mapping_runs_;
  RunAllocator module_runs_;
  RunAllocator page_runs_;
  RunAllocator row_runs_;
  std::unordered_map<ModuleId, ModuleEntry> modules_;
  std::unordered_map<std::int32_t, ProcessEntry> processes_;
  std::deque<Retired> retired_;
  unwinder::RuleTable rules_;
  std::size_t published_rules_ = 0;
  std::vector<bool> slab_exists_;
  Stats stats_;
};

}  // namespace flamed::daemon
