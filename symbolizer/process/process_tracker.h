// SPDX-License-Identifier: Apache-2.0
//
// ProcessTracker: every process of the machine with what it has mapped as code, followed as it changes.
//
// Lives on the ingest thread and gets events in the order of their time. Must not outlive its ModuleTable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "symbolizer/process/known_processes.h"
#include "symbolizer/process/mapping_event.h"
#include "symbolizer/process/mapping_set.h"
#include "symbolizer/process/module_table.h"
#include "symbolizer/process/process.h"

namespace flamed::symbolizer {

/// What became of a user stack.
enum class StackTrust : std::uint8_t {
  kAll,     ///< every address lies in known code
  kCut,     ///< an address in the middle does not, or is none of user space: it and what was outside are left out
  kNoMaps,  ///< nothing is known of the process's mappings: addresses are kept as they are
  kStale,   ///< it was walked by tables that did not show an address's mapping: what was outside of that is left out
  kDoubt,   ///< what was mapped at an address then is not known for sure: it is left out, with what was outside of it
};

class ProcessTracker {
 public:
  /// `proc` is where procfs is mounted; tests give a tree of their own.
  ProcessTracker(ModuleTable& modules, const Clock& clock, std::string proc = "/proc");
  ProcessTracker(const ProcessTracker&) = delete;
  ProcessTracker& operator=(const ProcessTracker&) = delete;

  // -- Events --------------------------------------------------------------------------------------------------------

  /// Enters every process that runs now. Events may be older than this look: they are told apart by their time.
  void scan();

  void on_mapping(MonotonicTime time, const MappingEvent& event);
  /// Of a new thread, pid and parent_pid are the same.
  void on_fork(MonotonicTime time, std::int32_t pid, std::int32_t parent_pid);
  void on_exec(MonotonicTime time, std::int32_t pid, std::string_view comm);
  void on_comm(std::int32_t pid, std::string_view comm);
  /// A thread ended. With the last one its process does, which need not be the one that it began with.
  void on_exit(MonotonicTime time, std::int32_t pid, std::int32_t tid);
  /// Events of [from, until) may be lost: what is known may be out of date, and is read again from /proc when next
  /// needed. Until then only that is believed which nothing speaks against. Before the events after `from` are applied.
  void on_events_lost(MonotonicTime from, MonotonicTime until);
  /// The same of one process, which causes so many that none of them are told from `from` on.
  void on_events_lost(std::int32_t pid, MonotonicTime from);
  /// The kernel reports no events: what /proc shows is all that there is, and is believed.
  void on_no_events();
  /// Forgets processes that ended long enough before `now` for no sample to be on its way any more. After events were
  /// lost, ends the processes that are no more.
  void purge(MonotonicTime now);

  // -- Samples -------------------------------------------------------------------------------------------------------

  /// Has the CPU fetch what resolve() and locate() will read of the process, while something else is done.
  void prefetch(std::int32_t pid) const;
  /// The process of a sample. Found, or read from /proc, or entered with unknown mappings when it is gone already.
  /// The reference is good until the next call of a non-const function.
  Process& resolve(const ProcessId& id, MonotonicTime time);

  /// Appends the frames of a user stack, innermost first, to `frames`. Asks for the files of modules that it meets.
  /// `tables`: the edition of the process's tables by which the stack was walked, and which the mappings may have
  /// outrun; empty when it was walked without.
  StackTrust locate(Process& process, MonotonicTime time, std::span<const std::uint64_t> addresses,
                    std::vector<Frame>& frames, std::optional<std::uint16_t> tables = std::nullopt);

  /// For a sample with this user `pc`: has its process executed a new program that has not begun yet? If the sample is
  /// in the kernel, its user registers are those of the program before, whose stack does not exist any more.
  [[nodiscard]] static bool is_within_exec(Process& process, MonotonicTime time, std::uint64_t pc);
  /// The process's mappings at `time`, which never change. Null if they are not known for sure.
  [[nodiscard]] static std::shared_ptr<const MappingSet> maps_at(Process& process, MonotonicTime time);
  /// The same as locate() with the mappings of maps_at(), for a stack that was walked by them, maybe some time ago.
  StackTrust locate_in(const MappingSet& maps, Process& process, MonotonicTime time,
                       std::span<const std::uint64_t> addresses, std::vector<Frame>& frames);
  /// Requests the file of a mapping whose rows are needed.
  void want_rows(Process& process, const Mapping& mapping, MonotonicTime now) { want_file(process, mapping, now); }

  // -- What is known, and what of it is new --------------------------------------------------------------------------

  /// What is known now; good for as long as the tracker.
  [[nodiscard]] const KnownProcesses& known() const { return known_; }
  /// Who forked the process, if that one is known: it runs, or ended a moment ago. Makes its start known, by one look
  /// at /proc, or from the time of its own fork when it is gone.
  Process* parent_of(Process& process);
  /// Will the end of the process be reported? A command line that was read by its pid may be another process's, if this
  /// one has ended meanwhile: then end() removes what was read later than that.
  [[nodiscard]] bool will_report_end(const Process& process) const {
    return events_are_reported_ && !process.stale && process.doubt_from == Process::kNoDoubt;
  }

  /// Processes that were sampled or published whose comm, executable or end changed. Whoever changes what it sets
  /// itself in a Process notes that here.
  [[nodiscard]] ProcessNews& changed() { return changed_; }

  /// Watched processes whose mappings changed, or that ended.
  [[nodiscard]] ProcessNews& remapped() { return remapped_; }
  /// From now on remapped() tells of the process; the first time, and when `anew`, of its mappings as they stand.
  void watch_mappings(Process& process, bool anew = false);
  /// visit(Process&) for every process that runs, in no order.
  template <typename Visit>
  void visit_running(Visit&& visit) {
    known_.visit_running(visit);
  }

 private:
  /// Replaced tables are kept for samples that were walked by them; ingest has never been as far behind.
  static constexpr std::int64_t kEditionsNs = 30 * kNsPerSecond;

  Process* read_process(std::int32_t pid, MonotonicTime time);
  void read_again(Process& process, MonotonicTime time);
  void end(Process& process, MonotonicTime time);
  static MappingSet& own(std::shared_ptr<MappingSet>& maps);
  static void settle(Process& process, MonotonicTime time);
  struct Covering {
    const Mapping* mapping = nullptr;
    bool doubtful = false;
  };
  [[nodiscard]] Covering covering(const Process& process, MonotonicTime time, std::uint64_t address) const;
  bool learn_start(Process& process) const;
  void set_start(Process& process, std::uint64_t start_ticks);
  void note_change(Process& process);
  void note_remapping(Process& process);
  ModuleId want_file(Process& process, const Mapping& mapping, MonotonicTime now);
  void want_jit(Process& process, MonotonicTime now);

  ModuleTable& modules_;
  const Clock& clock_;
  const std::string proc_;
  KnownProcesses known_;
  ProcessNews changed_{known_, &Process::changed};
  ProcessNews remapped_{known_, &Process::remapped};
  bool exits_missed_ = false;
  bool events_are_reported_ = true;
  MonotonicTime lost_until_{};  ///< events from before it may have been lost
  MonotonicTime forgot_editions_;
};

}  // namespace flamed::symbolizer
