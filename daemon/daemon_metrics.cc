// SPDX-License-Identifier: Apache-2.0
//
// The figures of /metrics.
#include <bpf/bpf.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "daemon/daemon_sources.h"
#include "daemon/version.h"
#include "store/index/kept_index.h"
#include "store/model/quality.h"

namespace flamed::daemon {
namespace {

using api::Metric;

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
  const auto by_part = [](double program, double daemon, double names, double skipping, double background,
                          double answers) {
    return std::vector<Metric::Value>{
        {{{"part", "kernel_program"}}, program},   {{{"part", "daemon"}}, daemon},
        {{{"part", "runtime_names"}}, names},      {{{"part", "skipped_records"}}, skipping},
        {{{"part", "unwind_tables"}}, background}, {{{"part", "answers"}}, answers}};
  };
  const CostReading& used = budget.used;
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / kNsPerSecond; };
  metrics.push_back({"flamed_cost_seconds_total", "All CPU time that flamed has used, by purpose.",
                     Metric::Type::kCounter,
                     by_part(seconds(used.program_ns), seconds(used.daemon_ns), seconds(used.names_ns),
                             seconds(used.skipping_ns), seconds(used.background_ns), seconds(used.answers_ns))});
  const CostShares& shares = budget.shares;
  metrics.push_back(
      {"flamed_cost_ratio", "The same over the last 5 s, as a part of the CPU time of all CPUs.", Metric::Type::kGauge,
       by_part(shares.program, shares.daemon, shares.names, shares.skipping, shares.background, shares.answers)});
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
  metrics.push_back(counter("flamed_thread_visits_passed_over_total",
                            "Visits left out because the thread's user has very many threads.",
                            waits.counts.passed_over));
  metrics.push_back(gauge("flamed_thread_visit_large_users", "Users whose threads have a share of each round only.",
                          waits.large_owners));
  metrics.push_back(gauge("flamed_thread_visit_list_round_seconds",
                          "As flamed_thread_visit_round_seconds, over the threads of all other users; 0: the same.",
                          static_cast<double>(waits.list_round_ns) / kNsPerSecond));
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

}  // namespace

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
