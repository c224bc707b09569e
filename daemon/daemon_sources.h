// SPDX-License-Identifier: Apache-2.0
//
// DaemonSources: the daemon's implementation of the API's Sources. Any thread; its arguments must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/sources.h"
#include "daemon/budget/budget_keeper.h"
#include "daemon/config/config.h"
#include "daemon/flow/cpu_accounts.h"
#include "daemon/flow/java_stacks.h"
#include "daemon/flow/late_walks.h"
#include "daemon/flow/off_cpu_intake.h"
#include "daemon/flow/reader.h"
#include "daemon/flow/runtime_stacks.h"
#include "daemon/flow/stored_until.h"
#include "daemon/flow/thread_census.h"
#include "daemon/flow/wait_intake.h"
#include "daemon/history/history.h"
#include "daemon/machine/pressure_watch.h"
#include "daemon/naming/row_cache.h"
#include "daemon/runtimes/code_heaps.h"
#include "daemon/runtimes/runtime_modules.h"
#include "daemon/sampler/kernel_program.h"
#include "daemon/sampler/sampler_figures.h"
#include "daemon/unwind/unwind_publisher.h"
#include "daemon/vitals.h"
#include "daemon/waits/off_cpu_capture.h"
#include "daemon/waits/wait_visitor.h"
#include "store/ring/store.h"
#include "symbolizer/names/caching_symbolizer.h"
#include "symbolizer/names/debuginfod.h"
#include "symbolizer/names/kernel_symbols.h"
#include "symbolizer/names/module_symbolizer.h"
#include "symbolizer/names/runtime_functions.h"
#include "symbolizer/opener/guarded_opener.h"
#include "symbolizer/process/module_table.h"
#include "symbolizer/worker/worker_module_reader.h"

namespace flamed::daemon {

class DaemonSources final : public api::Sources {
 public:
  struct Parts {
    const Config& config;
    const Clock& clock;
    const SamplerFigures& sampling;
    const KernelProgram& program;
    const BatchQueues& queues;
    const Vitals& vitals;
    const store::Store& store;
    const symbolizer::ModuleTable& modules;
    symbolizer::ModuleSymbolizer& symbolizer;
    const symbolizer::WorkerModuleReader& module_reader;
    const symbolizer::KernelSymbols& kernel_symbols;
    const symbolizer::CachingSymbolizer& cache;
    store::FrameNamer& namer;
    store::FrameNamer& quick_namer;
    const symbolizer::Debuginfod* debuginfod;  ///< null if no server is configured
    const UnwindPublisher* unwind;             ///< null if stacks are walked by frame pointers alone
    const LateWalks* late_walks;               ///< null if no samples bring a slice of their stack
    const WaitVisitor* waits;                  ///< null if waiting threads are not visited
    OffCpuCapture& off_cpu;
    OffCpuIntake& off_cpu_intake;
    const WaitIntake& wait_intake;
    const ThreadCensus& census;
    const RowCache* row_cache;              ///< null if rows are not kept for the next start
    const RuntimeModules* runtime_modules;  ///< null if Python functions are not shown, as is the next one
    const RuntimeStacks* runtime_stacks;
    const CodeHeaps* code_heaps;  ///< null if code that JVMs make is not read, as is the next one
    const JavaStacks* java_stacks;
    const symbolizer::RuntimeFunctions& functions;
    History* history;  ///< null if minutes are in memory alone
    const CpuAccounts& accounts;
    symbolizer::GuardedOpener& opener;
    const BudgetKeeper& budget;
    const PressureWatch& pressure;
    StoredUntil& stored;
    std::atomic<std::int64_t>& pushing_ns;  ///< CPU time of flamed-push
  };
  explicit DaemonSources(const Parts& parts) : parts_(parts), started_(parts.clock.wall()) {}

  [[nodiscard]] store::Snapshot await_snapshot() const override;
  [[nodiscard]] store::Snapshot with_history(const store::Snapshot& snapshot,
                                             std::span<const store::WallWindow> windows,
                                             const store::Detail& detail) const override;
  [[nodiscard]] std::uint64_t await_revision() const override;
  [[nodiscard]] store::FrameNamer& namer() override { return parts_.namer; }
  [[nodiscard]] store::FrameNamer& quick_namer() override { return parts_.quick_namer; }
  [[nodiscard]] MachineCode code_at(const CodeQuestion& question) override {
    return parts_.symbolizer.code_at(question);
  }
  [[nodiscard]] SourceFile source_file(const SourceQuestion& question) override;
  [[nodiscard]] api::Health health() const override;
  [[nodiscard]] std::vector<api::Metric> metrics() const override;
  [[nodiscard]] const Clock& clock() const override { return parts_.clock; }
  [[nodiscard]] std::string version() const override;
  [[nodiscard]] double frequency_hz() const override { return parts_.config.frequency_hz; }
  [[nodiscard]] WallTime started() const override { return started_; }
  [[nodiscard]] std::size_t cpus() const override { return parts_.sampling.cpus(); }
  [[nodiscard]] std::optional<std::uint32_t> user_of(std::int32_t pid) const override;
  void spend(std::int64_t cpu_ns) override { parts_.pushing_ns.fetch_add(cpu_ns, std::memory_order_relaxed); }
  [[nodiscard]] std::optional<api::OffCpuRefusal> begin_off_cpu(const api::OffCpuRequest& request) override;
  void cancel_off_cpu(WallTime asked) override { parts_.off_cpu.cancel(asked); }
  [[nodiscard]] std::optional<api::OffCpuAnswer> take_off_cpu(WallTime asked) override;
  [[nodiscard]] std::vector<PressedMinute> pressed_minutes(const store::WallWindow& window) const override {
    return parts_.pressure.minutes(window.from, window.to);
  }
  [[nodiscard]] api::CpuAccount machine_cpu(const store::WallWindow& window) const override {
    return parts_.accounts.machine(window);
  }
  [[nodiscard]] api::CpuAccount process_cpu(const store::WallWindow& window,
                                            const store::ProcessInfo& process) const override {
    return parts_.accounts.process(window, process);
  }
  [[nodiscard]] api::ThreadTime thread_time(const store::WallWindow& window) const override {
    if (parts_.waits == nullptr) return {.reason = "waiting threads are not visited"};
    return parts_.census.in(window);
  }

 private:
  [[nodiscard]] api::Component unwind_health() const;
  [[nodiscard]] api::Component runtimes_health() const;
  [[nodiscard]] api::Component history_health() const;
  [[nodiscard]] api::Component waits_health() const;
  [[nodiscard]] api::Component off_cpu_health() const;
  [[nodiscard]] api::Component pressure_health() const;
  /// Returns when all samples up to a second ago are stored, after a fifth of a second at the latest.
  void await_samples() const;

  const Parts parts_;
  const WallTime started_;
};

}  // namespace flamed::daemon
