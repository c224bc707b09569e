// SPDX-License-Identifier: Apache-2.0
//
// KnownProcesses: the processes that run, by pid, and those that ended a moment ago, by id.
// ProcessNews: those with changes to report.
//
// Both live on the ingest thread. ProcessTracker alone changes what is known; others have a const reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "symbolizer/process/process.h"

namespace flamed::symbolizer {

class KnownProcesses {
 public:
  [[nodiscard]] std::size_t running() const { return running_.size(); }
  [[nodiscard]] std::size_t ended() const { return ended_.size(); }

  /// Every module that one of them has mapped, unsorted, with repeats.
  void append_mapped_modules(std::vector<ModuleId>& modules) const;
  /// Another number whenever one of them has unmapped something.
  [[nodiscard]] std::uint64_t releases() const { return releases_; }
  void note_release() { ++releases_; }

  /// Null: not known. The same for what follows.
  [[nodiscard]] Process* find(const ProcessId& id);
  [[nodiscard]] const Process* find_running(std::int32_t pid) const {
    const auto found = running_.find(pid);
    return found == running_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] Process* find_running(std::int32_t pid) {
    const auto found = running_.find(pid);
    return found == running_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] Process* find_ended(const ProcessId& id) {
    const auto found = ended_.find(id);
    return found == ended_.end() ? nullptr : &found->second;
  }
  /// visit(Process&), in no order. It may end the process.
  template <typename Visit>
  void visit_running(Visit&& visit) {
    for (auto at = running_.begin(); at != running_.end();) visit((at++)->second);
  }

  /// The process that runs under the pid, entered if there is none.
  Process& enter(std::int32_t pid);
  /// Replaces the process that ran under its pid.
  Process& put(Process&& process) {
    const std::int32_t pid = process.id.pid;
    return running_.insert_or_assign(pid, std::move(process)).first->second;
  }
  /// Moves it to the ended ones.
  void end(Process& running);
  Process& put_ended(Process&& process);
  /// The one that ended under the pid before its start was told, and is known by `id` from now on.
  Process* adopt_ended(const ProcessId& id);
  /// Forgets those that ended long enough before `now` for no sample to be on its way any more.
  void forget_ended(MonotonicTime now);

 private:
  std::unordered_map<std::int32_t, Process> running_;
  std::unordered_map<ProcessId, Process> ended_;
  /// Of each process in ended_ an event that it may be forgotten some time after; where there was a later one, it comes
  /// here again.
  std::deque<std::pair<MonotonicTime, ProcessId>> to_forget_;
  std::uint64_t releases_ = 0;
};

class ProcessNews {
 public:
  /// The flag `is_noted` of each process is this one's alone.
  ProcessNews(KnownProcesses& known, bool Process::*is_noted) : known_(known), is_noted_(is_noted) {}

  void note(Process& process) {
    if (std::exchange(process.*is_noted_, true)) return;
    ids_.push_back(process.id);
  }
  /// What was noted of the process was noted by another id.
  void note_new_id(const Process& process) {
    if (process.*is_noted_) ids_.push_back(process.id);
  }
  /// Those noted since the last call: `visit(Process&)`.
  template <typename Visit>
  void take(Visit&& visit) {
    for (const ProcessId& id : ids_) {
      Process* const process = known_.find(id);
      if (process == nullptr || !std::exchange(process->*is_noted_, false)) continue;
      visit(*process);
    }
    ids_.clear();
  }

 private:
  KnownProcesses& known_;
  bool Process::*const is_noted_;
  std::vector<ProcessId> ids_;
};

}  // namespace flamed::symbolizer
