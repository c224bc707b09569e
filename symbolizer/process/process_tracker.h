// SPDX-License-Identifier: Apache-2.0
//
// ProcessTracker: every process of the machine with what it has mapped as code, followed as it changes.
//
// Lives on the ingest thread and gets events in the order of their time. Must not outlive its ModuleTable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
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

  /// Has the CPU fetch what resolve() and locate() will read of the process, while something else is done.
  void prefetch(std::int32_t pid) const;
  /// The process of a sample. Found, or read from /proc, or entered with unknown mappings when it is gone already.
  /// The reference is good until the next call of a non-const function.
  Process& resolve(const ProcessId& id, MonotonicTime time);
  /// Whoever asks a pid for its command line can have another process's, if this one has ended meanwhile. Where its end
  /// will be told of, it is taken back then: `detail` has none that was asked for after it.
  [[nodiscard]] bool will_tell_of_end(const Process& process) const {
    return events_are_told_ && !process.stale && process.doubt_from == Process::kNoDoubt;
  }

  /// Appends the frames of a user stack, innermost first, to `frames`. Asks for the files of modules that it meets.
  /// `tables`: the edition of the process's tables by which the stack was walked, and which the mappings may have
  /// outrun; empty when it was walked without.
  StackTrust locate(Process& process, MonotonicTime time, std::span<const std::uint64_t> addresses,
                    std::vector<Frame>& frames, std::optional<std::uint16_t> tables = std::nullopt);

  /// Forgets processes that ended long enough before `now` for no sample to be on its way any more. After events were
  /// lost, ends the processes that are no more.
  void purge(MonotonicTime now);

  /// Has take_changed() tell of a process that was sampled or published.
  void note_change(Process& process);
  /// Sampled processes whose comm, executable or end changed since the last call: `visit(Process&)`.
  template <typename Visit>
  void take_changed(Visit&& visit) {
    for (const ProcessId& id : changed_) {
      Process* process = find(id);
      if (process == nullptr || !process->changed) continue;
      process->changed = false;
      visit(*process);
    }
    changed_.clear();
  }

  /// Who forked the process, if that one is known: it runs, or ended a moment ago. Makes its start known, by one look
  /// at /proc, or from the time of its own fork when it is gone.
  Process* parent_of(Process& process);

  /// Every process that runs, in no order: `visit(Process&)`.
  template <typename Visit>
  void visit_running(Visit&& visit) {
    for (auto& [pid, process] : running_) visit(process);
  }

  /// From now on changes of the process's mappings are told by take_remapped(); the first time, and when `anew`, as
  /// they stand.
  void watch_mappings(Process& process, bool anew = false);
  /// Watched processes whose mappings changed, or that ended, since the last call: `visit(Process&)`.
  template <typename Visit>
  void take_remapped(Visit&& visit) {
    for (const ProcessId& id : remapped_) {
      Process* process = find(id);
      if (process == nullptr || !process->remapped) continue;
      process->remapped = false;
      visit(*process);
    }
    remapped_.clear();
  }

  /// Every module that a process has mapped, unsorted, with repeats.
  void append_mapped_modules(std::vector<ModuleId>& modules) const;
  /// Another number whenever a process has unmapped something.
  [[nodiscard]] std::uint64_t releases() const { return releases_; }

  [[nodiscard]] std::size_t running() const { return running_.size(); }
  [[nodiscard]] std::size_t ended() const { return ended_.size(); }

 private:
  /// Ended processes are judged by the time of a drain, and what was taken before that has come with it, but for what a
  /// CPU was stopped over in the middle of writing.
  static constexpr std::int64_t kGraceNs = 3 * kNsPerSecond;
  /// Replaced tables are kept for samples that were walked by them; ingest has never been as far behind.
  static constexpr std::int64_t kEditionsNs = 30 * kNsPerSecond;

  Process* read_process(std::int32_t pid, MonotonicTime time);
  void read_again(Process& process, MonotonicTime time);
  void end(std::unordered_map<std::int32_t, Process>::iterator running, MonotonicTime time);
  Process& keep_ended(const ProcessId& id, Process&& process);
  void forget_ended(MonotonicTime now);
  static MappingSet& own(std::shared_ptr<MappingSet>& maps);
  static void settle(Process& process, MonotonicTime time);
  struct Covering {
    const Mapping* mapping = nullptr;
    bool doubtful = false;
  };
  [[nodiscard]] Covering covering(const Process& process, MonotonicTime time, std::uint64_t address) const;
  [[nodiscard]] Process* find(const ProcessId& id);
  bool learn_start(Process& process) const;
  void set_start(Process& process, std::uint64_t start_ticks);
  void note_remapping(Process& process);
  bool want_file(Process& process, const Mapping& mapping, MonotonicTime now);
  void want_jit(Process& process, std::uint64_t address, MonotonicTime now);

  ModuleTable& modules_;
  const Clock& clock_;
  const std::string proc_;
  std::unordered_map<std::int32_t, Process> running_;
  std::unordered_map<ProcessId, Process> ended_;
  /// Of each process in ended_ an event that it may be forgotten some time after; where there was a later one, it comes
  /// here again.
  std::deque<std::pair<MonotonicTime, ProcessId>> to_forget_;
  std::vector<ProcessId> changed_;
  std::vector<ProcessId> remapped_;
  bool exits_missed_ = false;
  bool events_are_told_ = true;
  MonotonicTime lost_until_{};  ///< events from before it may have been lost
  MonotonicTime forgot_editions_;
  std::uint64_t releases_ = 0;
};

}  // namespace flamed::symbolizer
