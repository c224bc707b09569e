// SPDX-License-Identifier: Apache-2.0
//
// UnwindPublisher: decides what stands in the unwind tables: the mappings of processes that ran at the start or that
// samples were taken of, and the rows of the modules that those have mapped, within a budget.
//
// Rows are shared by every process that maps the same file. When the budget is met, the module whose code was sampled
// longest ago makes room for one that was sampled since, one at a time; modules in use and the vdso stay. Nothing that
// the kernel program may be reading is changed: a new version is written elsewhere, one word is switched over, and the
// old place is used again after a grace period.
//
// Ingest publishes processes, the `modules` thread rows; any thread may ask for figures. Must not outlive its maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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
#include "daemon/unwind/run_allocator.h"
#include "daemon/unwind/unwind_maps.h"
#include "symbolizer/process/process_tracker.h"
#include "unwinder/row.h"
#include "unwinder/rule_table.h"

namespace flamed::daemon {

class UnwindPublisher {
 public:
  /// `budget_bytes` is what rows may take, 4 bytes each; the other tables are of fixed size.
  UnwindPublisher(UnwindMaps& maps, std::size_t budget_bytes, const Clock& clock);
  ~UnwindPublisher();

  static constexpr std::string_view kFramePointersAlone = "user stacks are walked by frame pointers alone";
  /// Has the log say why there is none, and what follows from it.
  static void tell_none(const std::string& why);

  /// Is there a place for so many mappings? None of them are in the tables otherwise.
  static bool has_place_for(const symbolizer::Process& process);

  // -- Ingest ---------------------------------------------------------------------------------------------------------

  /// Enters the process with what it has mapped now, or replaces what stood there.
  void publish(const symbolizer::Process& process);
  /// Is there so much room that processes may be entered which nobody may ever meet?
  [[nodiscard]] bool has_room_to_spare() const;
  /// A no-op where the pid is another process's by now.
  void remove(const ProcessId& process);
  /// Has `pid` been entered and not removed?
  [[nodiscard]] bool has(std::int32_t pid) const;

  /// A walk, of a sample that stands for `cpu_ns`, came to a module whose rows do not stand. True when they should be
  /// built: once they are worth it (is_cheap() or a few times as much CPU time seen there as building is likely to
  /// take), at most once in a while, and ever less often where there was no room for them.
  [[nodiscard]] bool should_build(ModuleId module, std::int64_t cpu_ns);

  /// Are the rows of so much code built at the first sight of it? It takes a few milliseconds at most.
  static bool is_cheap(std::uint64_t code_bytes);

  /// Frees modules that are not in `live`, which is sorted.
  void retain(std::span<const ModuleId> live);

  // -- The `modules` thread ------------------------------------------------------------------------------------------

  enum class Outcome : std::uint8_t {
    kDone,
    kWait,    ///< an older module has been asked to leave: try again after kGraceNs
    kNoRoom,  ///< everything that stands is in use or was sampled since, or the rows alone exceed the budget
  };
  /// Counts the time that reading a file and building its rows took, for stats().
  void count_build(std::int64_t took_ns);

  /// Do the module's rows stand, or is it known to have none?
  [[nodiscard]] bool is_ready(ModuleId module) const;

  /// The file could not be read. True: its rows are to be asked for again when a sample misses them, as whatever was in
  /// the way may be gone then. False: that was the last time.
  bool may_try_again(ModuleId module);

  /// `rows` by file offset. Without any row the module's code is left by frame pointers.
  Outcome publish_rows(ModuleId module, const unwinder::UnwindRows& rows);

  /// Gives the memory of slabs back in which no rows stand any more.
  void drop_empty_slabs();

  /// What a run of the kernel program may have seen is free after this: one that takes longer discards its stack.
  static constexpr std::int64_t kGraceNs = FLAMED_GRACE_NS;

  struct Stats {
    std::size_t processes = 0;
    std::size_t mappings = 0;
    std::size_t modules = 0;  ///< with rows
    std::size_t rows = 0;
    std::size_t row_bytes = 0;   ///< of the budget
    std::size_t slab_bytes = 0;  ///< kernel memory that rows take, in whole slabs
    std::size_t budget_bytes = 0;
    std::size_t rules = 0;
    std::uint64_t builds = 0;   ///< files whose rows were built, again after evictions
    std::int64_t build_ns = 0;  ///< time that took in all
    std::uint64_t evictions = 0;
    std::uint64_t refused_processes = 0;  ///< no room for their mappings
    std::uint64_t refused_modules = 0;    ///< no room for their rows
    std::uint64_t dense_pages = 0;        ///< with more rows than a search covers: taken for unsupported
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Run {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  struct Placement;
  struct ModuleEntry {
    std::uint32_t index = 0;
    std::uint32_t processes = 0;  ///< whose mappings name the index
    bool ready = false;
    Run pages;
    std::vector<Run> rows;
    std::size_t row_count = 0;
    std::uint64_t code_bytes = 0;  ///< the largest mapping of it
    std::int64_t missed_ns = 0;    ///< CPU time of samples whose walk ended here for want of rows
    MonotonicTime asked_at{};      ///< when rows were last asked for
    unsigned refusals = 0;         ///< in a row
    unsigned failures = 0;         ///< of reading the file
  };
  struct ProcessEntry {
    std::uint64_t start_ticks = 0;
    Run mappings;
    std::vector<ModuleId> modules;
  };
  struct Retired {
    MonotonicTime at;
    RunAllocator* from;
    Run run;
  };

  ModuleEntry* enter_module(ModuleId id);
  void leave_modules(const ProcessEntry& process);
  void retire(RunAllocator& from, Run run);
  void reclaim();
  void unpublish(ModuleEntry& entry);
  void forget(std::unordered_map<ModuleId, ModuleEntry>::iterator module);
  void forget_unmapped();
  [[nodiscard]] std::uint32_t last_sampled(const ModuleEntry& entry) const;
  bool evict_one(const ModuleEntry& in_favour_of);
  [[nodiscard]] bool is_room_coming() const;
  Outcome refuse(ModuleEntry& entry);
  std::optional<Outcome> place(ModuleEntry& entry, const std::vector<unwinder::Rule>& rules, Placement& placement);
  void give_back(Placement& placement);
  [[nodiscard]] Status fill(const unwinder::UnwindRows& rows, const Placement& placement);
  [[nodiscard]] std::vector<std::uint16_t> translate_rules(const std::vector<unwinder::Rule>& rules);

  UnwindMaps& maps_;
  const std::size_t budget_bytes_;
  const Clock& clock_;

  mutable std::mutex mutex_;  ///< everything below
  std::uint32_t last_edition_ = 0;
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
