// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_sources.h"

#include <bpf/bpf.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/units.h"
#include "daemon/version.h"
#include "store/index/kept_index.h"
#include "store/model/quality.h"
#include "store/query/query.h"
#include "store/query/slot_selection.h"
#include "symbolizer/model/file_identity.h"

namespace flamed::daemon {
namespace {

using api::Metric;

/// Answers have all samples older than this.
constexpr std::int64_t kFreshNs = kNsPerSecond;
/// If ingest is behind, answers have only the samples that it has stored after this wait.
constexpr std::chrono::milliseconds kLongestAwait{200};
/// The same for the stacks of an exact measurement, for which somebody has waited for seconds.
constexpr std::chrono::milliseconds kLongestStacksAwait{2000};
/// A process's start is known to 10 ms, by a wall clock that may have been set since.
constexpr std::int64_t kRoughStartNs = kNsPerSecond;
/// A disk that takes a minute's history for so long does not answer.
constexpr std::int64_t kLongWriteNs = 10 * kNsPerSecond;

Metric single(Metric::Type type, std::string name, std::string help, double value) {
  return {std::move(name), std::move(help), type, {{{}, value}}};
}
template <typename Number>
Metric counter(std::string name, std::string help, Number value) {
  return single(Metric::Type::kCounter, std::move(name), std::move(help), static_cast<double>(value));
}
template <typename Number>
Metric gauge(std::string name, std::string help, Number value) {
  return single(Metric::Type::kGauge, std::move(name), std::move(help), static_cast<double>(value));
}

/// "3.2MiB": format_size() is exact, and long for odd numbers.
std::string mebibytes(std::size_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1fMiB", static_cast<double>(bytes) / (1U << 20));
  return text.data();
}

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_bytes() {
  const Result<std::string> text = read_file("/proc/self/statm", 256);
  if (!text) return 0;
  // size resident shared ...: in pages
  const std::size_t blank = text->find(' ');
  if (blank == std::string::npos) return 0;
  return std::strtod(text->c_str() + blank, nullptr) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void append_sample_metrics(const store::StoreStats& store, const SamplerFigures& sampling,
                           std::vector<Metric>& metrics) {
  metrics.push_back(counter("flamed_samples_taken_total", "Samples that the kernel program took.", sampling.taken()));
  metrics.push_back(
      counter("flamed_samples_whole_total", "Samples stored with their whole stack.", store.quality.whole));
  metrics.push_back(counter("flamed_samples_guessed_total",
                            "Samples stored with a stack that lacks frames of code without unwind information.",
                            store.quality.guessed()));
  Metric truncated{"flamed_samples_truncated_total",
                   "Samples stored without the outer part of their stack.",
                   Metric::Type::kCounter,
                   {}};
  for (std::size_t i = 0; i < store::kTruncationCount; ++i) {
    if (static_cast<store::Truncation>(i) == store::Truncation::kGuessed) continue;
    truncated.values.push_back({{{"reason", std::string(name_of(static_cast<store::Truncation>(i)))}},
                                static_cast<double>(store.quality.truncated[i])});
  }
  metrics.push_back(std::move(truncated));
  Metric lost{"flamed_samples_lost_total", "Samples that were taken and are in no answer.", Metric::Type::kCounter, {}};
  for (std::size_t i = 0; i < store::kLossCount; ++i) {
    lost.values.push_back(
        {{{"reason", std::string(name_of(static_cast<store::Loss>(i)))}}, static_cast<double>(store.quality.lost[i])});
  }
  metrics.push_back(std::move(lost));
  Metric gaps{"flamed_gaps_total", "Stretches of time whose samples are missing.", Metric::Type::kCounter, {}};
  Metric gap_seconds{"flamed_gap_seconds_total", "Their length.", Metric::Type::kCounter, {}};
  for (std::size_t i = 0; i < store::kGapReasonCount; ++i) {
    const std::string reason(name_of(static_cast<store::GapReason>(i)));
    gaps.values.push_back({{{"reason", reason}}, static_cast<double>(store.gaps[i].count)});
    gap_seconds.values.push_back({{{"reason", reason}}, static_cast<double>(store.gaps[i].ns) / kNsPerSecond});
  }
  metrics.push_back(std::move(gaps));
  metrics.push_back(std::move(gap_seconds));
  const SideBandSkipped skipped = sampling.side_band_skipped();
  metrics.push_back(
      counter("flamed_side_band_skipped_total",
              "Records of mappings and names that were skipped, since their users' processes had caused too many.",
              skipped.records));
  metrics.push_back(
      gauge("flamed_side_band_muted_processes", "Processes whose records are being skipped.", skipped.processes));
  metrics.push_back(gauge("flamed_sampled_cpus", "CPUs with a live timer and perf buffer.", sampling.cpus()));
  metrics.push_back(
      counter("flamed_timers_reopened_total", "Timers that had stopped and were opened again.", sampling.reopened()));
}

void append_program_metrics(const KernelProgram& program, std::vector<Metric>& metrics) {
  bpf_prog_info info{};
  std::uint32_t size = sizeof(info);
  if (::bpf_obj_get_info_by_fd(program.fd(), &info, &size) != 0 || info.run_cnt == 0) return;
  metrics.push_back(counter("flamed_bpf_run_seconds_total",
                            "Time spent in the kernel program while kernel.bpf_stats_enabled was on.",
                            static_cast<double>(info.run_time_ns) / kNsPerSecond));
  metrics.push_back(counter("flamed_bpf_runs_total",
                            "Runs of the kernel program while kernel.bpf_stats_enabled was on.", info.run_cnt));
}

void append_budget_metrics(const BudgetKeeper::State& budget, std::vector<Metric>& metrics) {
  const auto by_part = [](double program, double daemon, double skipping, double background, double answers) {
    return std::vector<Metric::Value>{{{{"part", "kernel_program"}}, program},
                                      {{{"part", "daemon"}}, daemon},
                                      {{{"part", "skipped_records"}}, skipping},
                                      {{{"part", "unwind_tables"}}, background},
                                      {{{"part", "answers"}}, answers}};
  };
  const CostReading& used = budget.used;
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / kNsPerSecond; };
  metrics.push_back({"flamed_cost_seconds_total", "All CPU time that flamed has used, by purpose.",
                     Metric::Type::kCounter,
                     by_part(seconds(used.program_ns), seconds(used.daemon_ns), seconds(used.skipping_ns),
                             seconds(used.background_ns), seconds(used.answers_ns))});
  const CostShares& shares = budget.shares;
  metrics.push_back({"flamed_cost_ratio", "The same over the last 5 s, as a part of the CPU time of all CPUs.",
                     Metric::Type::kGauge,
                     by_part(shares.program, shares.daemon, shares.skipping, shares.background, shares.answers)});
  metrics.push_back(gauge("flamed_cpu_budget_ratio",
                          "The share of CPU time that flamed may use (cpu_budget); 0: no budget.",
                          budget.budget.value_or(0)));
  metrics.push_back(
      gauge("flamed_sampling_frequency_hertz", "Samples a second on each busy CPU, in force.", budget.frequency_hz));
  metrics.push_back({"flamed_frequency_steps_total",
                     "Changes of the frequency to keep the budget.",
                     Metric::Type::kCounter,
                     {{{{"direction", "down"}}, static_cast<double>(budget.lowered)},
                      {{{"direction", "up"}}, static_cast<double>(budget.raised)}}});
  metrics.push_back(gauge("flamed_unwind_tables_slowed", "1 while new unwind tables have to wait for the budget.",
                          budget.is_background_slowed ? 1 : 0));
  metrics.push_back(counter("flamed_unwind_tables_put_off_total", "Unwind tables that were not built when requested.",
                            budget.put_off));
}

void append_off_cpu_metrics(const OffCpuCapture::State& off_cpu, std::vector<Metric>& metrics) {
  metrics.push_back(gauge("flamed_off_cpu_measuring", "1 while waits of some processes are measured exactly.",
                          off_cpu.is_measuring ? 1 : 0));
  metrics.push_back(counter("flamed_off_cpu_measurements_total", "Exact measurements of waits.", off_cpu.captures));
  metrics.push_back(counter("flamed_off_cpu_waits_total", "Waits in those that have ended.", off_cpu.counts.waits));
  metrics.push_back(counter("flamed_off_cpu_stacks_total", "Stacks of these waits.", off_cpu.counts.stacks));
  metrics.push_back(counter("flamed_off_cpu_lost_records_total", "Records of these waits for which there was no room.",
                            off_cpu.counts.no_room));
  metrics.push_back(counter("flamed_off_cpu_run_seconds_total",
                            "Time in the program at the switch, for threads that were measured.",
                            static_cast<double>(off_cpu.counts.run_ns) / kNsPerSecond));
}

void append_store_metrics(const store::StoreStats& store, std::size_t index_bytes, std::vector<Metric>& metrics) {
  metrics.push_back(gauge("flamed_store_bytes", "Memory that the store accounts for.", store.used_bytes));
  metrics.push_back(gauge("flamed_function_index_bytes", "Memory of what queries cache.", index_bytes));
  metrics.push_back(gauge("flamed_store_budget_bytes", "Memory that the store may use.", store.budget_bytes));
  metrics.push_back(gauge("flamed_store_exact_bytes",
                          "Of flamed_store_bytes: samples and waits that are kept one by one.", store.exact_bytes));
  metrics.push_back(gauge("flamed_store_exact_budget_bytes", "Memory that samples kept one by one may use.",
                          store.exact_budget_bytes));
  metrics.push_back(gauge("flamed_store_exact_samples", "Samples that are kept one by one.", store.exact_samples));
  if (store.exact_from) {
    metrics.push_back(gauge("flamed_store_exact_from_timestamp_seconds",
                            "Start of the oldest minute since which samples are kept one by one, or of sampling in it.",
                            static_cast<double>(store.exact_from->ns) / kNsPerSecond));
  }
  metrics.push_back(gauge("flamed_store_slots", "Minutes held.", store.slots));
  metrics.push_back(gauge("flamed_store_histogram_entries", "Pairs of thread and stack over all minutes held.",
                          store.histogram_entries));
  metrics.push_back(gauge("flamed_store_nodes", "Nodes of the call-tree.", store.nodes));
  metrics.push_back(gauge("flamed_store_frames", "Distinct frames.", store.frames));
  metrics.push_back(gauge("flamed_store_threads", "Threads named by samples held.", store.threads));
  metrics.push_back(gauge("flamed_store_processes", "Processes named by samples held.", store.processes));
  metrics.push_back({"flamed_store_slots_dropped_total",
                     "Minutes dropped, by the bound that was reached.",
                     Metric::Type::kCounter,
                     {{{{"bound", "retention"}}, static_cast<double>(store.slots_dropped_for_age)},
                      {{{"bound", "memory_budget"}}, static_cast<double>(store.slots_dropped_for_budget)},
                      {{{"bound", "memory_pressure"}}, static_cast<double>(store.slots_dropped_for_memory)}}});
  metrics.push_back(
      {"flamed_store_share_losses_total",
       "Samples that lost their stack or were dropped because their user had more than a share of the store.",
       Metric::Type::kCounter,
       {{{{"what", "old_stack"}}, static_cast<double>(store.stacks_given_up)},
        {{{"what", "new_stack"}}, static_cast<double>(store.stacks_cut_for_share)},
        {{{"what", "sample"}}, static_cast<double>(store.samples_dropped_for_share)}}});
  metrics.push_back(gauge("flamed_store_users_above_share",
                          "Users whose samples that happened to in the last ten minutes.", store.above_share.size()));
  metrics.push_back(counter("flamed_store_given_back_bytes_total",
                            "Memory that the store freed because the daemon was short of it.", store.given_back_bytes));
  if (store.oldest) {
    metrics.push_back(gauge("flamed_store_oldest_timestamp_seconds",
                            "Start of the oldest minute held, or of sampling in it.",
                            static_cast<double>(store.oldest->ns) / kNsPerSecond));
  }
}

void append_unwind_metrics(const UnwindPublisher::Stats& unwind, std::vector<Metric>& metrics) {
  metrics.push_back(
      gauge("flamed_unwind_processes", "Processes with mappings in the unwind tables.", unwind.processes));
  metrics.push_back(gauge("flamed_unwind_mappings", "Mappings of these processes.", unwind.mappings));
  metrics.push_back(gauge("flamed_unwind_modules", "Modules with unwind rows in the tables.", unwind.modules));
  metrics.push_back(gauge("flamed_unwind_rows", "Unwind rows of these modules.", unwind.rows));
  metrics.push_back(gauge("flamed_unwind_row_bytes", "Memory of the rows.", unwind.row_bytes));
  metrics.push_back(gauge("flamed_unwind_slab_bytes", "Kernel memory reserved for rows so far.", unwind.slab_bytes));
  metrics.push_back(gauge("flamed_unwind_budget_bytes", "Memory that rows may take.", unwind.budget_bytes));
  metrics.push_back(gauge("flamed_unwind_rules", "Distinct unwind rules.", unwind.rules));
  metrics.push_back(counter("flamed_unwind_builds_total", "Files whose unwind rows were built.", unwind.builds));
  metrics.push_back(counter("flamed_unwind_build_seconds_total", "Time that building unwind rows took.",
                            static_cast<double>(unwind.build_ns) / kNsPerSecond));
  metrics.push_back(counter("flamed_unwind_reuses_total",
                            "Files whose unwind rows had been kept since an earlier build.", unwind.reuses));
  metrics.push_back(
      counter("flamed_unwind_evictions_total", "Modules whose rows were evicted for others.", unwind.evictions));
  metrics.push_back({"flamed_unwind_refused_total",
                     "What was refused for lack of room in the unwind tables.",
                     Metric::Type::kCounter,
                     {{{{"what", "process"}}, static_cast<double>(unwind.refused_processes)},
                      {{{"what", "module"}}, static_cast<double>(unwind.refused_modules)},
                      {{{"what", "dense_page"}}, static_cast<double>(unwind.dense_pages)}}});
}

void append_late_walk_metrics(const SampleCounts& counts, const LateWalks::Stats& late, std::vector<Metric>& metrics) {
  metrics.push_back(counter("flamed_stack_slices_total",
                            "Samples that brought a slice of their stack, since their walk had to wait.",
                            counts.sliced));
  metrics.push_back(counter("flamed_stack_slices_refused_total",
                            "Samples whose walk had to wait and that found no room for a slice.",
                            counts.slices_refused));
  metrics.push_back(counter("flamed_samples_walked_late_total",
                            "Samples whose stack was walked by its slice, not by the kernel program.", late.walked));
  metrics.push_back(counter("flamed_late_walks_given_up_total",
                            "Samples with a slice whose unwind rows did not come in time.", late.given_up));
}

void append_code_metrics(const CodeHeaps::Stats& code, std::vector<Metric>& metrics) {
  metrics.push_back(gauge("flamed_jvm_processes", "JVMs whose code heap is read.", code.processes));
  metrics.push_back(counter("flamed_jvm_readings_total", "Readings of code heaps.", code.readings));
  metrics.push_back(counter("flamed_jvm_failed_readings_total", "Readings of code heaps that failed.", code.failures));
  metrics.push_back({"flamed_jvm_reading_seconds_total",
                     "Time for these readings.",
                     Metric::Type::kCounter,
                     {{{}, static_cast<double>(code.reading_ns) / static_cast<double>(kNsPerSecond)}}});
  metrics.push_back(counter("flamed_jvm_code_total", "Pieces of code that readings have met.", code.blobs));
  metrics.push_back(counter("flamed_jvm_code_replaced_total",
                            "Pieces of code that had gone or changed at the next reading.", code.replaced));
}

void append_java_metrics(const JavaStacks::Stats& java, std::vector<Metric>& metrics) {
  metrics.push_back(counter("flamed_java_samples_total", "Samples with frames in a JVM's code heap.", java.samples));
  metrics.push_back({"flamed_java_frames_total",
                     "Frames in code heaps, by what is known of their method.",
                     Metric::Type::kCounter,
                     {{{{"name", "yes"}}, static_cast<double>(java.named_frames)},
                      {{{"name", "interpreted"}}, static_cast<double>(java.interpreted_frames)},
                      {{{"name", "replaced"}}, static_cast<double>(java.replaced_frames)},
                      {{{"name", "no"}}, static_cast<double>(java.unnamed_frames - java.replaced_frames)}}});
  metrics.push_back(gauge("flamed_java_places", "Places in code heaps whose methods are known.", java.places));
}

void append_runtime_metrics(const RuntimeStacks& stacks, std::vector<Metric>& metrics) {
  Metric samples{
      "flamed_runtime_samples_total", "Samples with frames of a managed runtime.", Metric::Type::kCounter, {}};
  Metric frames{"flamed_runtime_frames_total",
                "Frames of runtimes in samples, by whether their function has a name.",
                Metric::Type::kCounter,
                {}};
  Metric cut{
      "flamed_runtime_cut_total", "Samples without their outer frames of a runtime.", Metric::Type::kCounter, {}};
  for (const runtimes::RuntimeKind kind : runtimes::kRuntimeKinds) {
    const RuntimeStacks::Stats stats = stacks.stats(kind);
    const std::string runtime(runtimes::key_of(kind));
    samples.values.push_back({{{"runtime", runtime}}, static_cast<double>(stats.samples)});
    frames.values.push_back({{{"runtime", runtime}, {"name", "yes"}}, static_cast<double>(stats.named_frames)});
    frames.values.push_back({{{"runtime", runtime}, {"name", "no"}}, static_cast<double>(stats.unnamed_frames)});
    cut.values.push_back({{{"runtime", runtime}}, static_cast<double>(stats.cut)});
  }
  metrics.push_back(std::move(samples));
  metrics.push_back(std::move(frames));
  metrics.push_back(std::move(cut));
  metrics.push_back(
      gauge("flamed_runtime_codes", "Pieces of code of running processes whose names are known.", stacks.codes()));
}

void append_runtime_function_metrics(const symbolizer::RuntimeFunctions::Stats& functions,
                                     std::vector<Metric>& metrics) {
  metrics.push_back(
      gauge("flamed_runtime_functions", "Functions of managed runtimes whose names are kept.", functions.functions));
  metrics.push_back(gauge("flamed_runtime_function_bytes", "Memory of these names.", functions.bytes));
  metrics.push_back(counter("flamed_runtime_functions_refused_total",
                            "Functions whose names were not kept for lack of room.", functions.refused));
}

void append_worker_metrics(const symbolizer::WorkerModuleReader::Stats& worker, std::vector<Metric>& metrics) {
  using symbolizer::RequestKind;
  using Worker = symbolizer::WorkerModuleReader;
  Metric requests{
      "flamed_worker_requests_total", "Requests to the ELF worker, by outcome.", Metric::Type::kCounter, {}};
  Metric seconds{"flamed_worker_seconds_total", "Time that these requests took.", Metric::Type::kCounter, {}};
  for (std::size_t k = 0; k < symbolizer::kRequestKinds; ++k) {
    const std::string kind = symbolizer::name_of(static_cast<RequestKind>(k));
    for (std::size_t o = 0; o < Worker::kOutcomes; ++o) {
      const std::string outcome = Worker::name_of(static_cast<Worker::Outcome>(o));
      requests.values.push_back({{{"kind", kind}, {"outcome", outcome}}, static_cast<double>(worker.requests[k][o])});
    }
    seconds.values.push_back({{{"kind", kind}}, static_cast<double>(worker.request_ns[k]) / kNsPerSecond});
  }
  metrics.push_back(std::move(requests));
  metrics.push_back(std::move(seconds));
  metrics.push_back(gauge("flamed_worker_in_flight", "Requests that the ELF worker is working on.", worker.in_flight));
  metrics.push_back(counter("flamed_worker_restarts_total", "ELF workers that were started in the place of a dead one.",
                            worker.starts == 0 ? 0 : worker.starts - 1));
  metrics.push_back(
      counter("flamed_worker_failed_starts_total", "ELF workers that failed to start.", worker.failed_starts));
  metrics.push_back(counter("flamed_worker_cpu_seconds_total", "CPU time that the ELF worker has used.",
                            static_cast<double>(worker.cpu_ns) / kNsPerSecond));
  metrics.push_back(gauge("flamed_worker_peak_bytes", "Resident memory of its largest request.", worker.peak_bytes));
}

void append_symbol_metrics(const symbolizer::CachingSymbolizer::Stats& cache,
                           const symbolizer::ModuleSymbolizer::Stats& tables, std::vector<Metric>& metrics) {
  metrics.push_back(counter("flamed_symbol_cache_hits_total", "Addresses named from the cache.", cache.hits));
  metrics.push_back(counter("flamed_symbol_cache_misses_total", "Addresses that were looked up.", cache.misses));
  metrics.push_back(gauge("flamed_symbol_cache_bytes", "Memory of the cache.", cache.bytes));
  metrics.push_back(counter("flamed_symbol_renewals_total", "Modules named again because their debug file appeared.",
                            cache.renewals));
  metrics.push_back(counter("flamed_symbol_tables_loaded_total", "Files whose symbols were read.", tables.loads));
  metrics.push_back(
      counter("flamed_symbol_tables_failed_total", "Files whose symbols could not be read.", tables.failed_loads));
  // In the order of ElfSymbols::Source.
  constexpr std::array<const char*, symbolizer::ModuleSymbolizer::kSources> kSources{
      "none", "dynsym", "mini_debug_info", "debug_file", "go", "symtab"};
  Metric by_source{
      "flamed_symbol_tables_by_source_total", "Files whose symbols were read, by source.", Metric::Type::kCounter, {}};
  for (std::size_t i = 0; i < kSources.size(); ++i) {
    by_source.values.push_back({{{"source", kSources[i]}}, static_cast<double>(tables.loads_from[i])});
  }
  metrics.push_back(std::move(by_source));
  Metric debug_files{"flamed_debug_files_total",
                     "Files that lack symbols or lines, by whether a debug file was found.",
                     Metric::Type::kCounter,
                     {}};
  debug_files.values.push_back({{{"found", "yes"}}, static_cast<double>(tables.debug_files_found)});
  debug_files.values.push_back({{{"found", "no"}}, static_cast<double>(tables.debug_files_missed)});
  metrics.push_back(std::move(debug_files));
  metrics.push_back(gauge("flamed_symbol_table_bytes", "Memory of the symbol tables.", tables.table_bytes));
  metrics.push_back(
      counter("flamed_lines_located_total", "Addresses whose source lines were looked up.", tables.located));
  metrics.push_back(counter("flamed_lines_failed_total", "Look-ups of source lines that failed, by file and question.",
                            tables.failed_locates));
}

void append_wait_metrics(const WaitVisitor::State& waits, const store::StoreStats& store,
                         std::vector<Metric>& metrics) {
  metrics.push_back(counter("flamed_thread_visits_total", "Visits of threads.", waits.counts.visited));
  metrics.push_back(counter("flamed_thread_visit_records_total", "Visits that found a thread in another wait.",
                            waits.counts.recorded));
  metrics.push_back(counter("flamed_thread_visits_moved_total", "Visits of threads that ran meanwhile: left out.",
                            waits.counts.moved));
  metrics.push_back(gauge("flamed_thread_visit_round_seconds",
                          "From the end of a round over all threads to the end of the next.",
                          static_cast<double>(waits.round_ns) / kNsPerSecond));
  metrics.push_back(
      gauge("flamed_thread_stacks_to_read", "Threads whose stacks are still to be read.", waits.stacks_to_read));
  metrics.push_back(gauge("flamed_waiting_threads", "Threads whose present waits are known.", store.waiting_threads));
  metrics.push_back(counter("flamed_thread_stack_timeouts_total",
                            "Reads of waiting threads' stacks that did not come to an end.", waits.stack_timeouts));
}

void append_debuginfod_metrics(const symbolizer::Debuginfod::Stats& stats, std::vector<Metric>& metrics) {
  metrics.push_back(counter("flamed_debuginfod_fetched_total", "Debug files that servers sent.", stats.fetched));
  metrics.push_back(counter("flamed_debuginfod_failed_total", "Debug files that no server had or sent.", stats.failed));
  metrics.push_back(gauge("flamed_debuginfod_waiting", "Debug files that wait to be fetched.", stats.waiting));
}

void append_history_metrics(const History::State& history, std::vector<Metric>& metrics) {
  metrics.push_back(gauge("flamed_history_bytes", "Size of the minutes on disk.", history.archive.bytes));
  metrics.push_back(gauge("flamed_history_files", "Files with minutes on disk.", history.archive.files));
  metrics.push_back(gauge("flamed_history_unusable_files", "Of these, damaged ones and such of another version.",
                          history.archive.unusable.size()));
  metrics.push_back(gauge("flamed_history_failing", "1 while minutes can't be written to disk.",
                          history.problem.has_value() ? 1 : 0));
  metrics.push_back(counter("flamed_history_minutes_total", "Minutes written to disk.", history.archive.minutes));
  metrics.push_back(counter("flamed_history_missed_minutes_total",
                            "Minutes that were dropped from memory before they could be written to disk.",
                            history.missed_minutes));
  metrics.push_back(counter("flamed_history_unlinked_files_total", "Files deleted for their age or for room.",
                            history.archive.files_unlinked));
}

/// How waits for block devices are known, and what to do about it.
std::string describe_disk(const WaitIntake::Figures& figures) {
  if (figures.threads != 0 && figures.threads_with_disk == figures.threads)
    return "; waits for block devices by the kernel's account";
  std::string text = figures.threads_with_disk == 0
                         ? "; waits for block devices are samples"
                         : "; waits for block devices by the kernel's account of " +
                               std::to_string(figures.threads_with_disk) + " threads, and samples of others";
  // Since 5.14; before, it can only be switched at boot.
  const Result<std::string> is_on = read_file("/proc/sys/kernel/task_delayacct", 16);
  if (!is_on) return text + ": this kernel has no switch kernel.task_delayacct";
  return text + (is_on->starts_with('0')
                     ? ": kernel.task_delayacct is 0 (sysctl kernel.task_delayacct=1 is for threads that start then)"
                     : ": they began before kernel.task_delayacct was 1");
}

}  // namespace

void DaemonSources::await_samples() const {
  parts_.stored.await({parts_.clock.monotonic().ns - kFreshNs}, kLongestAwait);
}

store::Snapshot DaemonSources::await_snapshot() const {
  await_samples();
  return parts_.store.snapshot();
}

store::Snapshot DaemonSources::with_history(const store::Snapshot& snapshot, std::span<const store::WallWindow> windows,
                                            const store::Detail& detail) const {
  return parts_.history == nullptr ? snapshot : parts_.history->past().with(snapshot, windows, detail);
}

/// The revision after await_samples(): otherwise a client's own drain would make its answer look old.
std::uint64_t DaemonSources::await_revision() const {
  await_samples();
  return parts_.store.revision();
}

std::string DaemonSources::version() const { return kVersion; }

SourceFile DaemonSources::source_file(const SourceQuestion& question) {
  symbolizer::SourceRequest request{question.process, question.file, question.viewer, question.groups};
  if (request.groups.size() > symbolizer::kMostSourceGroups) request.groups.resize(symbolizer::kMostSourceGroups);
  const Result<symbolizer::SourceCopy> copied = parts_.opener.copy_source(request);
  if (!copied) return {copied.error().message()};
  Result<std::string> text = read_fd(copied->text.get(), symbolizer::kMostSourceBytes);
  if (!text) return {text.error().message()};
  const symbolizer::ModulePtr module = parts_.modules.find(question.code);
  std::optional<std::int64_t> made_ns;
  if (module != nullptr && module->file) {
    if (const auto identity = symbolizer::identity_of(module->file.get())) made_ns = identity->version.modified_ns;
  } else if (question.started) {
    made_ns = question.started->ns + kRoughStartNs;
  }
  return {{}, std::move(text).value(), made_ns && copied->modified_ns > *made_ns};
}

std::optional<std::uint32_t> DaemonSources::user_of(std::int32_t pid) const {
  struct stat status {};
  // The directory's owner is the process's effective user even if the process is not dumpable; only the files in it
  // belong to root then (task_dump_owner()).
  if (pid <= 0 || ::stat(("/proc/" + std::to_string(pid)).c_str(), &status) != 0) return std::nullopt;
  return status.st_uid;
}

std::optional<api::OffCpuRefusal> DaemonSources::begin_off_cpu(const api::OffCpuRequest& request) {
  using Why = api::OffCpuRefusal::Why;
  const Status begun = parts_.off_cpu.begin({request.processes, request.length_ns, request.asked, request.is_limited,
                                             request.with_wakers, request.only_user});
  if (begun) return std::nullopt;
  return api::OffCpuRefusal{begun.error().code() == EBUSY ? Why::kBusy : Why::kUnavailable, begun.error().message(), 0};
}

std::optional<api::OffCpuAnswer> DaemonSources::take_off_cpu(WallTime asked) {
  const std::optional<OffCpuCapture::Outcome> outcome = parts_.off_cpu.take_outcome(asked);
  if (!outcome) return std::nullopt;
  parts_.stored.await(parts_.clock.monotonic(), kLongestStacksAwait);
  store::Selection selection;
  for (const std::int32_t process : outcome->processes) selection.processes.push_back({process, {}});
  const auto processes =
      store::selected_processes(parts_.store.snapshot(), selection, OffCpuCapture::kMostProcessesKnown);
  std::vector<std::string> wakers;
  store::Snapshot snapshot = parts_.off_cpu_intake.take_snapshot(*outcome, processes, parts_.clock, wakers);
  const std::int64_t offset_ns = parts_.clock.wall_offset_ns();
  return api::OffCpuAnswer{std::move(snapshot),
                           {{outcome->began.ns + offset_ns}, {outcome->ended.ns + offset_ns}},
                           outcome->warnings,
                           std::move(wakers)};
}

api::Component DaemonSources::history_health() const {
  if (parts_.history == nullptr) {
    return {"history", true,
            "minutes are kept in memory alone: set `history` to a folder to keep them on disk as well"};
  }
  const History::State state = parts_.history->state();
  api::Component component{"history", true, ""};
  component.detail = mebibytes(state.archive.bytes) + " of " + format_size(parts_.config.history_bytes) + " in " +
                     std::to_string(state.archive.files) + (state.archive.files == 1 ? " file in " : " files in ") +
                     parts_.history->folder();
  if (state.archive.oldest) component.detail += ", from " + store::to_text(*state.archive.oldest) + " on";
  for (const std::string& unusable : state.archive.unusable) {
    component.ok = false;
    component.detail += "; left as it is: " + unusable;
  }
  for (const std::string& problem : parts_.history->past().problems()) {
    component.ok = false;
    component.detail += "; what is on disk is not answered whole: " + problem;
  }
  if (state.waits_since && parts_.clock.wall().ns - state.waits_since->ns > kLongWriteNs) {
    component.ok = false;
    component.detail += "; the disk has not answered since " + store::to_text(*state.waits_since);
  }
  if (state.problem) {
    component.ok = false;
    component.detail += "; nothing is written since " + store::to_text(state.problem->since) + ": " +
                        state.problem->reason +
                        ". It is tried again twice a minute, and what memory still has is written then";
  }
  return component;
}

api::Component DaemonSources::unwind_health() const {
  const std::string why_no_tables = parts_.program.walks().why_no_tables();
  const std::string why_no_kernel_walk = parts_.program.walks().why_no_kernel_walk();
  const std::string of_kernel = why_no_kernel_walk.empty()
                                    ? "; kernel stacks by the kernel's own tables"
                                    : "; kernel stacks are walked by the kernel: " + why_no_kernel_walk;
  if (parts_.unwind == nullptr || !why_no_tables.empty()) {
    return {"unwind", true,
            std::string(UnwindPublisher::kFramePointersAlone) +
                ", so those of most programs are cut short: " + why_no_tables + of_kernel};
  }
  const UnwindPublisher::Stats unwind = parts_.unwind->stats();
  return {"unwind", true,
          "user stacks are walked by unwind tables: " + std::to_string(unwind.modules) + " modules, " +
              std::to_string(unwind.rows) + " rows in " + mebibytes(unwind.row_bytes) + " of " +
              format_size(unwind.budget_bytes) + of_kernel};
}

/// Everybody may ask, so files are named without their folders.
api::Component DaemonSources::runtimes_health() const {
  if (parts_.runtime_modules == nullptr && parts_.code_heaps == nullptr) {
    const bool is_off = parts_.config.runtimes.is_empty();
    return {"runtimes", true,
            is_off ? "functions of managed runtimes are not shown (runtimes)"
                   : "functions of managed runtimes are not shown: there are no unwind tables"};
  }
  const std::string why_not = parts_.program.walks().why_no_runtimes();
  if (!why_not.empty() && parts_.code_heaps == nullptr)
    return {"runtimes", true, "functions of managed runtimes are not shown: " + why_not};
  const std::string why_no_slots = parts_.program.walks().why_no_slots();
  constexpr std::size_t kMostShown = 16;
  std::set<std::string> texts;
  bool is_ok = true;
  if (!why_not.empty()) texts.insert("Python functions are not shown: " + why_not);
  if (parts_.code_heaps != nullptr) {
    for (const CodeHeaps::Fact& fact : parts_.code_heaps->facts()) {
      std::string text = fact.path.substr(fact.path.rfind('/') + 1);
      if (!fact.version.empty()) text += " (HotSpot " + fact.version + ")";
      text += fact.missing.empty() ? ": stacks by the code heap" : ": not read: " + fact.missing;
      is_ok = is_ok && fact.missing.empty();
      texts.insert(std::move(text));
    }
  }
  const std::vector<RuntimeModules::Fact> modules =
      parts_.runtime_modules == nullptr ? std::vector<RuntimeModules::Fact>() : parts_.runtime_modules->facts();
  for (const RuntimeModules::Fact& fact : modules) {
    std::string text = fact.path.substr(fact.path.rfind('/') + 1);
    if (!fact.version.empty()) text += " (" + fact.version + ")";
    text += fact.how.empty() ? ": not read" : ": by " + fact.how;
    const bool lacks_slots = fact.is_by_slots && !why_no_slots.empty();
    const std::string missing = lacks_slots ? "the kernel program does not read them: " + why_no_slots : fact.missing;
    if (!missing.empty()) text += ", but " + missing;
    is_ok = is_ok && missing.empty();
    texts.insert(std::move(text));
  }
  std::string detail = texts.empty() ? "no managed runtime was met yet" : "";
  std::size_t shown = 0;
  for (const std::string& text : texts) {
    if (++shown > kMostShown) break;
    detail += (detail.empty() ? "" : "; ") + text;
  }
  if (texts.size() > kMostShown) detail += "; and " + std::to_string(texts.size() - kMostShown) + " more";
  return {"runtimes", is_ok, detail};
}

api::Component DaemonSources::waits_health() const {
  if (parts_.waits == nullptr) return {"waits", true, "waiting threads are not visited: waits is off"};
  const WaitVisitor::State state = parts_.waits->state();
  if (!state.problem.empty()) return {"waits", false, "waiting threads are not visited: " + state.problem};
  if (state.round_ns == 0) return {"waits", true, "waiting threads are visited for the first time"};
  const std::int64_t tenths = (state.round_ns + kNsPerSecond / 20) / (kNsPerSecond / 10);
  return {"waits", true,
          "waiting threads are visited: " + std::to_string(state.threads) + " threads, a round takes " +
              std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s" +
              (state.stacks_to_read == 0 ? ""
                                         : "; the stacks of " + std::to_string(state.stacks_to_read) +
                                               " that have waited for long are still to be read") +
              describe_disk(parts_.wait_intake.figures())};
}

api::Component DaemonSources::off_cpu_health() const {
  const OffCpuCapture::State state = parts_.off_cpu.state();
  if (!state.problem.empty()) return {"off_cpu", false, "waits were not measured exactly: " + state.problem};
  if (state.is_measuring) return {"off_cpu", true, "waits of some processes are being measured exactly"};
  return {"off_cpu", true, "waits are measured exactly when somebody asks (/off_cpu): now nobody does"};
}

api::Component DaemonSources::pressure_health() const {
  const PressureWatch::State state = parts_.pressure.state();
  if (!state.is_on) return {"pressure", true, "minutes under pressure are not marked: pressure is off"};
  if (!state.problem.empty()) return {"pressure", true, "minutes under pressure are not marked: " + state.problem};
  const auto percents = [](const auto& share_of) {
    std::string text;
    for (std::size_t i = 0; i < kResources; ++i) {
      const std::optional<double> share = share_of(i);
      if (!share) continue;
      text += (text.empty() ? "" : ", ") + std::string(kResourceNames[i]) + " " +
              std::to_string(std::lround(100 * *share)) + " %";
    }
    return text;
  };
  const std::string limits = "minutes are marked in which threads waited for so much of the time: " +
                             percents([&](std::size_t i) { return parts_.config.pressure[i]; });
  if (!state.last) return {"pressure", true, limits};
  return {"pressure", true, limits + "; in the last minute " + percents([&](std::size_t i) {
                              return std::optional(state.last->shares[i]);
                            })};
}

api::Health DaemonSources::health() const {
  const Vitals::Verdict vitals = parts_.vitals.verdict();
  const store::StoreStats store = parts_.store.stats();
  api::Health health;
  health.oldest = store.oldest;
  if (parts_.history != nullptr) {
    const std::optional<WallTime> on_disk = parts_.history->state().archive.oldest;
    if (on_disk && (!health.oldest || *on_disk < *health.oldest)) health.oldest = on_disk;
  }

  const std::string problem = parts_.sampling.last_problem();
  api::Component sampler{"sampler", vitals.sampling && problem.empty(), ""};
  if (!vitals.sampling)
    sampler.detail = vitals.problem;
  else if (!problem.empty())
    sampler.detail = problem;
  else
    sampler.detail =
        std::to_string(parts_.sampling.cpus()) + " CPUs at " + format_frequency(parts_.sampling.frequency_hz());
  health.components.push_back(std::move(sampler));

  health.components.push_back(
      {"reader", vitals.reader_alive,
       vitals.reader_alive ? "drains the kernel's buffers every 5 s at least, and at requests" : vitals.problem});
  const std::size_t muted = parts_.sampling.side_band_skipped().processes;
  health.components.push_back(
      {"side_band", muted == 0,
       muted == 1
           ? "a process maps code or changes its name so often that its records are skipped, and its mappings are "
             "read from /proc: the log names it"
       : muted != 0 ? std::to_string(muted) +
                          " processes map code or change their names so often that their records are skipped, and "
                          "their mappings are read from /proc: the log names them"
       : parts_.sampling.has_side_band() ? "the kernel reports mapping changes as they happen"
                                         : "the kernel does not report mapping changes: they are read from /proc, and "
                                           "processes that live for less than a second may stay unnamed"});
  health.components.push_back(unwind_health());
  health.components.push_back(runtimes_health());
  health.components.push_back(waits_health());
  health.has_waits = parts_.waits != nullptr && health.components.back().ok;
  health.components.push_back(off_cpu_health());
  health.components.push_back(pressure_health());
  const symbolizer::WorkerModuleReader::State worker = parts_.module_reader.state();
  health.components.push_back({"symbols", worker.ok, worker.detail});
  const Status kernel_symbols = parts_.kernel_symbols.check();
  health.components.push_back(
      {"kernel_symbols", kernel_symbols.ok(),
       kernel_symbols ? "the kernel shows the addresses of its functions" : kernel_symbols.error().message()});
  // Everybody may ask, so the users are not named.
  const std::string above_share =
      store.above_share.empty()
          ? ""
          : "; users whose stacks took more than a share of it while others needed room, and who lose "
            "their own oldest: " +
                std::to_string(store.above_share.size()) + ", the log says who";
  health.components.push_back({"store", true,
                               mebibytes(store.used_bytes) + " of " + format_size(store.budget_bytes) + " in " +
                                   std::to_string(store.slots) + " minutes" + above_share});
  health.components.push_back(history_health());
  const BudgetKeeper::State budget = parts_.budget.state();
  health.components.push_back({"cpu_budget",
                               budget.frequency_hz == budget.full_frequency_hz && !budget.is_background_slowed,
                               describe(budget)});
  health.healthy = vitals.sampling && vitals.reader_alive;
  health.ready = health.healthy && vitals.has_drained;
  return health;
}

std::vector<Metric> DaemonSources::metrics() const {
  const store::StoreStats store = parts_.store.stats();
  const symbolizer::ModuleTable::Stats modules = parts_.modules.stats();
  std::vector<Metric> metrics;
  metrics.push_back({"flamed_build_info", "Always 1.", Metric::Type::kGauge, {{{{"version", kVersion}}, 1}}});
  append_sample_metrics(store, parts_.sampling, metrics);
  append_program_metrics(parts_.program, metrics);
  append_budget_metrics(parts_.budget.state(), metrics);
  append_store_metrics(store, parts_.namer.kept_index()->used_bytes(), metrics);
  if (parts_.unwind != nullptr) append_unwind_metrics(parts_.unwind->stats(), metrics);
  if (parts_.row_cache != nullptr) {
    const RowCache::Stats kept = parts_.row_cache->stats();
    metrics.push_back(
        gauge("flamed_row_cache_files", "Files whose unwind rows are kept for the next start.", kept.files));
    metrics.push_back(gauge("flamed_row_cache_bytes", "Size of these rows on disk.", kept.bytes));
  }
  if (parts_.history != nullptr) append_history_metrics(parts_.history->state(), metrics);
  if (parts_.late_walks != nullptr) {
    append_late_walk_metrics(parts_.program.counts(), parts_.late_walks->stats(), metrics);
  }
  if (parts_.code_heaps != nullptr) append_code_metrics(parts_.code_heaps->stats(), metrics);
  if (parts_.java_stacks != nullptr) append_java_metrics(parts_.java_stacks->stats(), metrics);
  if (parts_.runtime_stacks != nullptr) {
    append_runtime_metrics(*parts_.runtime_stacks, metrics);
    append_runtime_function_metrics(parts_.functions.stats(), metrics);
  }
  std::int64_t stack_helper_ns = 0;
  if (parts_.waits != nullptr) {
    const WaitVisitor::State waits = parts_.waits->state();
    stack_helper_ns = waits.helper_cpu_ns;
    append_wait_metrics(waits, store, metrics);
  }
  append_off_cpu_metrics(parts_.off_cpu.state(), metrics);
  const CpuAccounts::Stats accounts = parts_.accounts.stats();
  metrics.push_back(gauge("flamed_cpu_account_processes", "Processes whose CPU time by the kernel's accounts is kept.",
                          accounts.processes));
  metrics.push_back(gauge("flamed_cpu_account_bytes", "Memory of these accounts.", accounts.bytes));
  metrics.push_back(
      gauge("flamed_batches_waiting", "Drained batches that ingest has not taken yet.", parts_.queues.full.size()));
  metrics.push_back(gauge("flamed_modules", "Files and other memory that mappings or stacks name.", modules.modules));
  metrics.push_back(gauge("flamed_module_files", "Files held open for naming.", modules.open_files));
  metrics.push_back(gauge("flamed_closed_module_names_bytes",
                          "Memory of the names of addresses in files that were closed.", modules.names_bytes));
  metrics.push_back(counter("flamed_closed_modules_forgotten_total",
                            "Closed files whose names were dropped for lack of room.", modules.names_dropped));
  metrics.push_back(counter("flamed_module_files_crowded_out_total",
                            "Files that were closed while mapped, to make room for other users' files.",
                            modules.files_crowded_out));
  metrics.push_back(
      counter("flamed_module_open_failures_total", "Files that could not be opened.", modules.failed_opens));
  const symbolizer::GuardedOpener::Stats opener = parts_.opener.stats();
  metrics.push_back(gauge("flamed_hung_file_systems",
                          "Places in file systems that do not answer: files there stay unopened.", opener.hung));
  metrics.push_back(
      counter("flamed_module_open_timeouts_total", "Opens that timed out because of that.", opener.timeouts));
  append_symbol_metrics(parts_.cache.stats(), parts_.symbolizer.stats(), metrics);
  if (parts_.debuginfod != nullptr) append_debuginfod_metrics(parts_.debuginfod->stats(), metrics);
  const symbolizer::JitSymbols::Stats jit = parts_.symbolizer.jit_stats();
  metrics.push_back(counter("flamed_jit_tables_loaded_total", "Perf maps and jitdumps read.", jit.loads));
  metrics.push_back(
      counter("flamed_jit_tables_failed_total", "Perf maps and jitdumps that could not be read.", jit.failed_loads));
  metrics.push_back(gauge("flamed_jit_table_bytes", "Memory of the names in perf maps and jitdumps.", jit.table_bytes));
  const symbolizer::WorkerModuleReader::Stats worker = parts_.module_reader.stats();
  append_worker_metrics(worker, metrics);
  metrics.push_back(counter("flamed_cpu_seconds_total",
                            "CPU time that the daemon has used, its ELF worker, its helpers and flamed-push included.",
                            own_cpu_seconds() + static_cast<double>(worker.cpu_ns + opener.cpu_ns + stack_helper_ns +
                                                                    parts_.pushing_ns.load(std::memory_order_relaxed)) /
                                                    kNsPerSecond));
  metrics.push_back(gauge("flamed_resident_bytes", "Resident memory of the daemon.", resident_bytes()));
  return metrics;
}

}  // namespace flamed::daemon
