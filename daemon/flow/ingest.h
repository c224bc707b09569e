// SPDX-License-Identifier: Apache-2.0
//
// Ingest: turns drained records into stored samples: follows the processes, finds the module of each address, and is
// the only writer of the store.
//
// Lives on the ingest thread; its arguments must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "daemon/containers/container_namer.h"
#include "daemon/flow/cpu_accounts.h"
#include "daemon/flow/java_stacks.h"
#include "daemon/flow/late_walks.h"
#include "daemon/flow/off_cpu_intake.h"
#include "daemon/flow/runtime_stacks.h"
#include "daemon/flow/thread_census.h"
#include "daemon/flow/wait_intake.h"
#include "daemon/runtimes/code_heaps.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/unwind/known_programs.h"
#include "daemon/unwind/unwind_publisher.h"
#include "store/ring/store.h"
#include "symbolizer/names/runtime_functions.h"
#include "symbolizer/process/module_table.h"
#include "symbolizer/process/process_details.h"
#include "symbolizer/process/process_tracker.h"

namespace flamed::daemon {

class Ingest {
 public:
  struct Parts {
    UnwindPublisher* unwind = nullptr;                       ///< null: stacks are walked by frame pointers alone
    CpuAccounts* accounts = nullptr;                         ///< null: they are not needed
    LateWalks* late_walks = nullptr;                         ///< null: no samples bring a slice of their stack
    RuntimeStacks* runtimes = nullptr;                       ///< null: functions of managed runtimes are not shown
    WaitIntake* waits = nullptr;                             ///< null: waiting threads are not visited
    WaitIntake* reasons = nullptr;                           ///< why threads wait; null: the next one is, too
    OffCpuIntake* off_cpu = nullptr;                         ///< null: waits are never measured exactly
    ThreadCensus* census = nullptr;                          ///< null: waiting threads are not visited
    JavaStacks* java = nullptr;                              ///< null: Java methods are not shown
    CodeHeaps* code = nullptr;                               ///< null: code that JVMs make is not read
    KnownPrograms* programs = nullptr;                       ///< null: there are no unwind tables
    symbolizer::RuntimeFunctions* functions = nullptr;       ///< null: no stack has names in it
    ContainerNamer* containers = nullptr;                    ///< null: containers have no names but their ids
    std::function<void(std::int32_t tid)> thread_started{};  ///< empty: nobody wants to know
  };
  Ingest(symbolizer::ProcessTracker& processes, symbolizer::ProcessDetails& details, symbolizer::ModuleTable& modules,
         store::Store& store, const Clock& clock, const Parts& parts);

  /// Enters the running processes into the unwind tables, so that their first samples are walked by tables. Call it
  /// once, before the first batch.
  void begin();

  /// Processes every event of the batch, in its order.
  void apply(const EventBatch& batch);

  /// Are there samples that are not stored yet? Then walk_late() should be called soon.
  [[nodiscard]] bool has_waiting() const {
    return (late_walks_ != nullptr && late_walks_->is_waiting()) || (runtimes_ != nullptr && runtimes_->is_waiting()) ||
           (java_ != nullptr && java_->is_waiting()) || (code_ != nullptr && code_->is_waiting());
  }
  void walk_late();
  /// Stores all samples. After the last batch.
  void finish();

 private:
  void prefetch(const EventBatch& batch, const EventBatch::Event& event) const;
  void set_period(std::int64_t period_ns, MonotonicTime time);
  void note_sampled(symbolizer::Process& process, const ProcessId& id, const SampleRecord& sample);
  void apply_sample(MonotonicTime time, std::uint16_t cpu, const SampleRecord& sample);
  void apply_visit(MonotonicTime time, std::uint16_t cpu, const VisitRecord& visit);
  void apply_off_cpu(MonotonicTime time, std::uint16_t cpu, VisitRecord visit);
  /// The process and the thread that `visit` is about, and its kernel stack with the reason, in stack_.
  store::StackSample describe_visit(symbolizer::Process& process, MonotonicTime time, std::uint16_t cpu,
                                    const VisitRecord& visit, WaitIntake& reasons);
  [[nodiscard]] bool are_tables_wrong(const symbolizer::Process& process, MonotonicTime time,
                                      const flamed_sample& sample, symbolizer::StackTrust trust) const;
  void apply_mapping(MonotonicTime time, const MappingRecord& mapping);
  void apply_counts(const EventBatch& batch);
  void apply_gaps(const EventBatch& batch);
  void describe(symbolizer::Process& process);
  [[nodiscard]] WallTime ended_at(const symbolizer::Process& process) const;
  void publish(symbolizer::Process& process);
  void publish_ancestors(symbolizer::Process& process);
  void publish_mappings(symbolizer::Process& process);
  void republish_runtimes();
  void republish_containers();
  void publish_remapped();
  void note_missed_code(symbolizer::Process& process, MonotonicTime time, const flamed_sample& sample);
  void look_at_code(MonotonicTime now);
  void look_again(MonotonicTime now);
  void free_functions(MonotonicTime now);
  void report_mapped_modules(MonotonicTime now);
  void drop_unused_modules();

  symbolizer::ProcessTracker& processes_;
  symbolizer::ProcessDetails& details_;
  symbolizer::ModuleTable& modules_;
  store::Store& store_;
  const Clock& clock_;
  UnwindPublisher* const unwind_;
  CpuAccounts* const accounts_;
  LateWalks* const late_walks_;
  RuntimeStacks* const runtimes_;
  WaitIntake* const waits_;
  WaitIntake* const reasons_;
  OffCpuIntake* const off_cpu_;
  ThreadCensus* const census_;
  const std::function<void(std::int32_t tid)> thread_started_;
  JavaStacks* const java_;
  CodeHeaps* const code_;
  KnownPrograms* const programs_;
  symbolizer::RuntimeFunctions* const functions_;
  ContainerNamer* const containers_;
  std::uint64_t malformed_ = 0;
  std::int64_t period_ns_ = 0;       ///< of the last stored samples
  std::int64_t wall_at_boot_ns_;     ///< changes when the wall clock is set
  std::size_t modules_to_sweep_at_;  ///< number of modules
  std::uint64_t releases_told_ = 0;  ///< KnownProcesses::releases() at the last sweep
  MonotonicTime mapped_told_;
  MonotonicTime functions_freed_;
  std::uint64_t runtimes_told_ = 0;  ///< RuntimeModules::edition() when processes were last published for it
  std::vector<ModuleId> mapped_;     ///< scratch
  std::vector<ProcessId> recoded_;   ///< scratch of look_at_code()
  std::vector<Frame> user_frames_;   ///< innermost first
  std::vector<Frame> stack_;         ///< outermost first: user, then kernel
};

}  // namespace flamed::daemon
