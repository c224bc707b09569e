// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/ingest.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "store/query/query.h"

namespace flamed::daemon {
namespace {

using store::Loss;
using store::Truncation;
using symbolizer::StackTrust;

/// Too few modules for a sweep: a machine's programs and libraries.
constexpr std::size_t kFewModules = 8'192;
/// Reading all mappings takes up to some hundred microseconds.
constexpr std::int64_t kBetweenLooksNs = 2 * kNsPerSecond;
/// A snapshot, and all frames of stored stacks.
constexpr std::int64_t kBetweenFreesNs = 10 * kNsPerSecond;
/// NTP slews by at most 0.5 ms a second; more than this is a step.
constexpr std::int64_t kClockStepNs = kNsPerSecond;
/// Tables of this age that lack a mapping will not be updated by themselves.
constexpr std::int64_t kTablesStandNs = kNsPerSecond;
/// The CPU's caches don't have most processes: the data for this many events ahead is prefetched.
constexpr std::size_t kAhead = 8;
/// More than the depth of real process trees: shells, builds, containers.
constexpr int kMostAncestors = 64;

/// The truncation for the walk's end (enum flamed_user_end); empty if the stack is whole.
std::optional<Truncation> truncation_of(const flamed_sample& sample, StackTrust trust) {
  if ((sample.flags & FLAMED_KERNEL_DEPTH_LIMIT) != 0) return Truncation::kKernelDepthLimit;
  if (trust == StackTrust::kCut) {
    if ((sample.flags & FLAMED_WALKED_BY_TABLES) != 0) return Truncation::kNoMapping;
    return (sample.flags & FLAMED_AWAITS_TABLES) != 0 ? Truncation::kNewProcess : Truncation::kBrokenFramePointer;
  }
  if (trust == StackTrust::kStale || trust == StackTrust::kDoubt) return Truncation::kNoMapping;
  switch (sample.user_end) {
    case FLAMED_END_OUTERMOST:
    case FLAMED_END_NO_USER_SPACE:
      return std::nullopt;
    case FLAMED_END_DEPTH_LIMIT:
      return Truncation::kDepthLimit;
    case FLAMED_END_UNREADABLE:
      return Truncation::kUnreadableStack;
    case FLAMED_END_NO_REGISTERS:
      return Truncation::kNoUserRegisters;
    case FLAMED_END_NO_PROCESS:
      return Truncation::kNewProcess;
    case FLAMED_END_NO_MAPPING:
      return Truncation::kNoMapping;
    case FLAMED_END_ROWS_PENDING:
      return Truncation::kRowsPending;
    case FLAMED_END_NO_INFORMATION:
      return Truncation::kNoUnwindInformation;
    case FLAMED_END_UNSUPPORTED:
      return Truncation::kUnsupportedUnwind;
    case FLAMED_END_UNKNOWN_REGISTER:
      return Truncation::kUnknownRegister;
    case FLAMED_END_NOT_GROWING:
      return Truncation::kDamagedStack;
    default:
      return Truncation::kBrokenFramePointer;
  }
}

/// Of a visit without a usable stack.
Truncation truncation_of(const flamed_wait& wait) {
  switch (wait.stack) {
    case FLAMED_STACK_LATER:
      return Truncation::kStackLater;
    case FLAMED_STACK_RAN:
      return Truncation::kStackRan;
    case FLAMED_STACK_ABSENT:
      return Truncation::kUnreadableStack;
    case FLAMED_STACK_READ:
      return Truncation::kNoMapping;  // the process's are not known at that time, or in doubt
    default:
      return Truncation::kStackNotRead;
  }
}

}  // namespace

Ingest::Ingest(symbolizer::ProcessTracker& processes, symbolizer::ProcessDetails& details,
               symbolizer::ModuleTable& modules, store::Store& store, const Clock& clock, const Parts& parts)
    : processes_(processes),
      details_(details),
      modules_(modules),
      store_(store),
      clock_(clock),
      unwind_(parts.unwind),
      accounts_(parts.accounts),
      late_walks_(parts.late_walks),
      runtimes_(parts.runtimes),
      waits_(parts.waits),
      reasons_(parts.reasons),
      off_cpu_(parts.off_cpu),
      census_(parts.census),
      thread_started_(parts.thread_started),
      java_(parts.java),
      code_(parts.code),
      programs_(parts.programs),
      functions_(parts.functions),
      containers_(parts.containers),
      wall_at_boot_ns_(clock.wall().ns - clock.boottime_ns()),
      modules_to_sweep_at_(kFewModules) {}

void Ingest::begin() {
  if (unwind_ == nullptr) return;
  processes_.visit_running([this](symbolizer::Process& process) {
    if (process.maps == nullptr || process.maps->mappings().empty() || !unwind_->has_room_to_spare()) return;
    processes_.watch_mappings(process);
    processes_.remapped().take([this](symbolizer::Process& watched) { publish_mappings(watched); });
  });
}

void Ingest::apply(const EventBatch& batch) {
  if (!batch.has_side_band) processes_.on_no_events();
  if (batch.side_band_lost_from) processes_.on_events_lost(*batch.side_band_lost_from, batch.drained_at);
  malformed_ = batch.malformed;
  if (runtimes_ != nullptr) runtimes_->keep(batch.code_copies, batch.drained_at);
  if (census_ != nullptr && batch.threads) census_->counted(*batch.threads);
  // A process may have been forked in this batch, and be in doubt from some later time on.
  auto muted = batch.muted.begin();
  const auto doubt_until = [&](MonotonicTime time) {
    for (; muted != batch.muted.end() && muted->from <= time; ++muted)
      processes_.on_events_lost(muted->pid, muted->from);
  };
  // A thread that ends was in its wait up to the last round before.
  auto round = batch.rounds.begin();
  const auto see_rounds_until = [&](MonotonicTime time) {
    for (; round != batch.rounds.end() && round->ended <= time; ++round) waits_->seen(round->began, round->late);
  };
  const std::vector<EventBatch::Event>& events = batch.events();
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i + kAhead < events.size()) prefetch(batch, events[i + kAhead]);
    const EventBatch::Event& event = events[i];
    doubt_until(event.time);
    const std::span<const std::byte> body = batch.body(event);
    switch (event.kind) {
      case RecordKind::kSample:
        if (const auto sample = parse_sample(body))
          apply_sample(event.time, event.cpu, *sample);
        else
          ++malformed_;
        break;
      case RecordKind::kMapping:
        if (const auto mapping = parse_mapping(body)) apply_mapping(event.time, *mapping);
        break;
      case RecordKind::kComm:
        if (const auto comm = parse_comm(body)) {
          if (event.comm_is_exec)
            processes_.on_exec(event.time, comm->pid, comm->comm);
          else if (comm->pid == comm->tid)
            processes_.on_comm(comm->pid, comm->comm);
        }
        break;
      case RecordKind::kFork:
        if (const auto task = parse_task(body)) {
          processes_.on_fork(event.time, task->pid, task->parent_pid);
          if (thread_started_) thread_started_(task->tid);
        }
        if (census_ != nullptr) census_->started(event.time);
        break;
      case RecordKind::kExit:
        if (const auto task = parse_task(body)) {
          processes_.on_exit(event.time, task->pid, task->tid);
          if (waits_ != nullptr) {
            see_rounds_until(event.time);
            waits_->ended(task->tid, event.time);
          }
          if (census_ != nullptr) census_->ended(event.time);
        }
        break;
      case RecordKind::kVisit:
        if (const auto visit = parse_visit(body)) {
          if (visit->sample.header->kind == FLAMED_OFF_CPU) {
            if (off_cpu_ != nullptr) apply_off_cpu(event.time, event.cpu, *visit);
          } else if (waits_ != nullptr) {
            apply_visit(event.time, event.cpu, *visit);
          }
        }
        break;
      case RecordKind::kLost:
      case RecordKind::kOther:
      case RecordKind::kMalformed:
        break;
    }
  }
  doubt_until(batch.drained_at);
  // Even if nothing ran since.
  set_period(batch.period_ns, batch.drained_at);
  if (waits_ != nullptr) see_rounds_until({std::numeric_limits<std::int64_t>::max()});
  apply_counts(batch);
  apply_gaps(batch);
  look_again(batch.drained_at);
  if (runtimes_ != nullptr) republish_runtimes();
  if (containers_ != nullptr) republish_containers();
  processes_.changed().take([this](symbolizer::Process& process) { publish(process); });
  if (code_ != nullptr) look_at_code(batch.drained_at);
  publish_remapped();
  processes_.purge(batch.drained_at);
  store_.advance(batch.drained_at);
  if (late_walks_ != nullptr) late_walks_->tell_store();
  if (java_ != nullptr) java_->tidy(batch.drained_at);
  if (runtimes_ != nullptr) runtimes_->tidy(batch.drained_at);
  free_functions(batch.drained_at);
  if (accounts_ != nullptr) accounts_->advance(batch.drained_at);
  if (census_ != nullptr) census_->advance(batch.drained_at);
  report_mapped_modules(batch.drained_at);
  drop_unused_modules();
}

void Ingest::walk_late() {
  if (!has_waiting()) return;
  const MonotonicTime now = clock_.monotonic();
  look_again(now);
  if (code_ != nullptr) {
    look_at_code(now);
    publish_remapped();
  }
  if (late_walks_ != nullptr) late_walks_->tell_store();
}

void Ingest::look_again(MonotonicTime now) {
  if (late_walks_ != nullptr) late_walks_->look_again(now);
  if (runtimes_ != nullptr) runtimes_->look_again(now);
  if (java_ != nullptr) java_->look_again(now);
}

void Ingest::finish() {
  if (late_walks_ != nullptr) late_walks_->finish();
  if (runtimes_ != nullptr) runtimes_->finish();
  if (java_ != nullptr) java_->finish();
  if (late_walks_ != nullptr) late_walks_->tell_store();
}

void Ingest::prefetch(const EventBatch& batch, const EventBatch::Event& event) const {
  if (event.kind != RecordKind::kSample) return;
  if (const auto sample = parse_sample(batch.body(event))) {
    processes_.prefetch(static_cast<std::int32_t>(sample->header->tgid));
  }
}

/// Sets the period of samples from `time` on.
void Ingest::set_period(std::int64_t period_ns, MonotonicTime time) {
  if (period_ns == 0 || period_ns == period_ns_) return;
  period_ns_ = period_ns;
  store_.set_period_ns(period_ns, time);
}

/// What a sample says of its process, beside the stack.
void Ingest::note_sampled(symbolizer::Process& process, const ProcessId& id, const SampleRecord& sample) {
  const flamed_sample& header = *sample.header;
  if (!process.sampled) {
    process.sampled = true;
    process.is_kernels = header.user_end == FLAMED_END_NO_USER_SPACE;
    process.cgroup_id = header.cgroup_id;
    if (process.comm.empty()) process.comm = std::string(sample.comm());
    // At the end of the batch: many programs of a build have ended by then, and need no reads of /proc.
    processes_.changed().note(process);
  } else if (process.is_kernels && header.user_end != FLAMED_END_NO_USER_SPACE) {
    // Only one of its threads was exiting.
    process.is_kernels = false;
    process.described = false;
    processes_.changed().note(process);
  } else if (process.cgroup_id != header.cgroup_id) {
    process.cgroup_id = header.cgroup_id;
    process.cgroup = details_.cgroup(header.cgroup_id, id);
    processes_.changed().note(process);
  }
}

void Ingest::apply_sample(MonotonicTime time, std::uint16_t cpu, const SampleRecord& sample) {
  const flamed_sample& header = *sample.header;
  set_period(static_cast<std::int64_t>(header.weight_ns), time);
  const ProcessId id{static_cast<std::int32_t>(header.tgid), header.start_boottime_ns / ProcessId::kNsPerTick};
  symbolizer::Process& process = processes_.resolve(id, time);
  if (accounts_ != nullptr && std::exchange(process.account_round, accounts_->round()) != accounts_->round())
    accounts_->saw(id);
  if (header.owner != FLAMED_NO_OWNER) process.owner_told = true;
  process.user = header.owner;
  note_sampled(process, id, sample);

  user_frames_.clear();
  std::optional<std::uint16_t> tables;
  if ((header.flags & FLAMED_WALKED_BY_TABLES) != 0) tables = header.tables;
  const bool is_within_exec = !sample.user.empty() &&
                              symbolizer::ProcessTracker::is_within_exec(process, time, sample.user[0]) &&
                              !sample.kernel.empty();
  StackTrust trust = StackTrust::kAll;
  if (!is_within_exec) trust = processes_.locate(process, time, sample.user, user_frames_, tables);
  if (unwind_ != nullptr && header.user_end != FLAMED_END_NO_USER_SPACE) {
    // The kernel program has another exec_id than we have, or did not find the process's tables.
    const bool anew = header.exec_id != process.exec_id || header.user_end == FLAMED_END_NO_PROCESS;
    process.exec_id = header.exec_id;
    processes_.watch_mappings(process, anew || are_tables_wrong(process, time, header, trust));
    if (code_ != nullptr) note_missed_code(process, time, header);
    if (header.user_end == FLAMED_END_ROWS_PENDING && !user_frames_.empty() &&
        unwind_->should_build(user_frames_.back().module, period_ns_)) {
      modules_.want_again(user_frames_.back().module);
    }
  }
  stack_.assign(user_frames_.rbegin(), user_frames_.rend());
  for (std::size_t i = sample.kernel.size(); i-- > 0;) {
    // As in user space: a caller's frame is at the call, not at the return address.
    stack_.push_back({kKernelModule, i == 0 ? sample.kernel[i] : sample.kernel[i] - 1});
  }

  store::StackSample stored;
  stored.time = time;
  stored.process = id;
  stored.tid = static_cast<std::int32_t>(header.tid);
  stored.comm = sample.comm();
  stored.frames = stack_;
  stored.truncation = truncation_of(header, trust);
  if (is_within_exec && stored.truncation != Truncation::kKernelDepthLimit) stored.truncation.reset();
  stored.cpu = cpu;
  stored.owner = header.owner;
  // A thread without memory is exiting: its process is unchanged.
  if (header.user_end != FLAMED_END_NO_USER_SPACE) process.not_dumpable = (header.flags & FLAMED_NOT_DUMPABLE) != 0;
  stored.is_hidden = process.not_dumpable;
  const LinkedStack linked{sample.linked_frames, sample.linked_calls, header.linked_layout, header.linked_cut != 0};
  if (header.slice_blocks != 0 && late_walks_ != nullptr) {
    if (is_within_exec)
      late_walks_->drop(header, cpu);
    else if (late_walks_->take(header, process, stored, sample.kernel.size(), linked))
      return;
  }
  if (runtimes_ != nullptr && !is_within_exec && runtimes_->take(process, stored, user_frames_.size(), linked)) return;
  if (java_ != nullptr && !is_within_exec && java_->take(process, stored, user_frames_.size(), linked)) return;
  store_.add(stored);
}

store::StackSample Ingest::describe_visit(symbolizer::Process& process, MonotonicTime time, std::uint16_t cpu,
                                          const VisitRecord& visit, WaitIntake& reasons) {
  const flamed_sample& header = *visit.sample.header;
  if (header.owner != FLAMED_NO_OWNER) process.owner_told = true;
  process.user = header.owner;
  note_sampled(process, process.id, visit.sample);
  process.not_dumpable = (header.flags & FLAMED_NOT_DUMPABLE) != 0;

  stack_.clear();
  for (std::size_t i = visit.sample.kernel.size(); i-- > 0;) {
    stack_.push_back({kKernelModule, i == 0 ? visit.sample.kernel[i] : visit.sample.kernel[i] - 1});
  }
  reasons.append_reason(visit, stack_);
  store::StackSample found;
  found.time = time;
  found.process = process.id;
  found.tid = static_cast<std::int32_t>(header.tid);
  found.comm = visit.sample.comm();
  found.frames = stack_;
  found.truncation = truncation_of(header, StackTrust::kAll);
  found.cpu = cpu;
  found.owner = header.owner;
  found.is_hidden = process.not_dumpable;
  if ((visit.wait->known & FLAMED_KNOWS_REGISTERS) != 0) found.truncation = truncation_of(*visit.wait);
  return found;
}

void Ingest::apply_visit(MonotonicTime time, std::uint16_t cpu, const VisitRecord& visit) {
  const flamed_sample& header = *visit.sample.header;
  const ProcessId id{static_cast<std::int32_t>(header.tgid), header.start_boottime_ns / ProcessId::kNsPerTick};
  symbolizer::Process& process = processes_.resolve(id, time);
  const store::StackSample found = describe_visit(process, time, cpu, visit, *waits_);
  if (header.slice_blocks != 0 && late_walks_ != nullptr) {
    if (unwind_ != nullptr && unwind_->has_room_to_spare()) processes_.watch_mappings(process);
    const auto whole = late_walks_->take_visit(header, process, found, stack_.size());
    if (whole) return waits_->visited(*whole, *visit.wait);
  }
  waits_->visited(found, *visit.wait);
}

void Ingest::apply_off_cpu(MonotonicTime time, std::uint16_t cpu, VisitRecord visit) {
  const flamed_sample& header = *visit.sample.header;
  const ProcessId id{static_cast<std::int32_t>(header.tgid), header.start_boottime_ns / ProcessId::kNsPerTick};
  symbolizer::Process& process = processes_.resolve(id, time);
  visit.sample.kernel = off_cpu_->without_program(visit.sample.kernel);
  const store::StackSample found = describe_visit(process, time, cpu, visit, *reasons_);
  if (header.slice_blocks != 0 && late_walks_ != nullptr) {
    if (unwind_ != nullptr && unwind_->has_room_to_spare()) processes_.watch_mappings(process);
    if (late_walks_->take_off_cpu(header, process, found, stack_.size(), visit.wait->switches)) return;
  }
  off_cpu_->add(found, visit.wait->switches);
}

/// Do the kernel program's tables lack mappings that we know, for longer than publishing takes? The kernel may have
/// refused an edition.
bool Ingest::are_tables_wrong(const symbolizer::Process& process, MonotonicTime time, const flamed_sample& sample,
                              StackTrust trust) const {
  if ((sample.flags & FLAMED_WALKED_BY_TABLES) == 0) return false;
  if (time.ns - process.tables.newest_from().ns < kTablesStandNs) return false;
  // The walk ended at an address in a known mapping.
  const bool misses_mapping = sample.user_end == FLAMED_END_NO_MAPPING && trust == StackTrust::kAll &&
                              !user_frames_.empty() && user_frames_.back().module != process.unmapped;
  return trust == StackTrust::kStale || misses_mapping;
}

void Ingest::apply_mapping(MonotonicTime time, const MappingRecord& mapping) {
  symbolizer::MappingEvent event;
  event.pid = mapping.pid;
  event.start = mapping.start;
  event.length = mapping.length;
  event.file_offset = mapping.file_offset;
  event.file = {mapping.device_major, mapping.device_minor, mapping.inode};
  event.path = mapping.path;
  processes_.on_mapping(time, event);
}

void Ingest::apply_counts(const EventBatch& batch) {
  const std::pair<Loss, std::uint64_t> losses[] = {
      {Loss::kRingFull, batch.counts.lost_ring_full},
      {Loss::kNoRing, batch.counts.lost_no_ring},
      {Loss::kMalformed, malformed_},
  };
  std::uint64_t lost = 0;
  for (const auto& [reason, count] : losses) {
    if (count != 0) store_.add_lost(reason, count, batch.drained_at);
    lost += count;
  }
  if (lost == 0) return;
  const std::int64_t offset_ns = clock_.wall_offset_ns();
  store_.add_gap({.from = {batch.drained_before.ns + offset_ns},
                  .to = {batch.drained_at.ns + offset_ns},
                  .reason = store::GapReason::kLost,
                  .lost_samples = lost});
}

void Ingest::apply_gaps(const EventBatch& batch) {
  const std::int64_t offset_ns = clock_.wall_offset_ns();
  for (const SamplingGap& gap : batch.gaps) {
    const WallTime to{gap.to.ns + offset_ns};
    store_.add_gap({.from = {to.ns - (gap.to.ns - gap.from.ns) - gap.suspended_ns},
                    .to = to,
                    .reason = gap.reason,
                    .cpu = gap.cpu});
  }
  const WallTime now = clock_.wall();
  const std::int64_t at_boot_ns = now.ns - clock_.boottime_ns();
  const std::int64_t set_by_ns = at_boot_ns - std::exchange(wall_at_boot_ns_, at_boot_ns);
  if (set_by_ns > kClockStepNs) {
    store_.add_gap({.from = {now.ns - set_by_ns}, .to = now, .reason = store::GapReason::kClockSet});
  }
}

/// Reads a sampled process's properties from /proc, once for each program that it runs.
void Ingest::describe(symbolizer::Process& process) {
  process.described = true;
  process.detail = {};
  process.asked_pid_at = {};
  if (!process.cgroup) process.cgroup = details_.cgroup(process.cgroup_id, process.id);
  // A kernel thread has no command line.
  if (process.ended || (process.is_kernels && process.owner_told)) return;
  if (process.owner_told && processes_.will_report_end(process)) {
    process.detail.command_line = details_.read_command_line(process.id.pid);
    process.asked_pid_at = clock_.monotonic();
  } else if (auto detail = details_.read(process.id)) {
    process.detail = std::move(*detail);
  }
}

WallTime Ingest::ended_at(const symbolizer::Process& process) const {
  return WallTime{process.last_seen.ns + clock_.wall_offset_ns()};
}

/// So that a subtree can be selected even if processes between its root and the sampled ones were never sampled.
void Ingest::publish_ancestors(symbolizer::Process& process) {
  process.published = true;
  symbolizer::Process* child = &process;
  for (int i = 0; i < kMostAncestors; ++i) {
    symbolizer::Process* const parent = processes_.parent_of(*child);
    if (parent == nullptr || parent->published) return;
    parent->published = true;
    // Its own parent first, since the record has the parent's start.
    static_cast<void>(processes_.parent_of(*parent));
    publish(*parent);
    child = parent;
  }
}

void Ingest::publish(symbolizer::Process& process) {
  if (process.ended && accounts_ != nullptr) accounts_->ended(process.id);
  if (process.ended && process.walked_late && programs_ != nullptr && process.program.is_file()) {
    const bool has_library = (code_ != nullptr && code_->has_library(process)) ||
                             (runtimes_ != nullptr && runtimes_->place_of(process).layout != 0);
    programs_->has_ended(process.program, has_library);
  }
  if (std::exchange(process.only_ended, false) && store_.end_process(process.id, ended_at(process))) return;
  if (process.sampled && !process.described) describe(process);
  if (!process.published) publish_ancestors(process);
  store::ProcessInfo info;
  info.id = process.id;
  info.comm = process.comm;
  info.executable = process.executable;
  info.cgroup_id = process.cgroup_id;
  info.parent_pid = process.parent_pid;
  info.parent_start_ticks = process.parent_start_ticks;
  info.uid = process.detail.uid;
  info.command_line = process.detail.command_line;
  if (process.cgroup != nullptr) {
    info.cgroup = process.cgroup->path;
    info.unit = process.cgroup->unit;
    const std::string& container = process.cgroup->container;
    info.container = containers_ == nullptr ? container : containers_->text_of(container);
  }
  const std::int64_t started_boottime_ns = static_cast<std::int64_t>(process.id.start_ticks * ProcessId::kNsPerTick);
  info.started = WallTime{clock_.wall().ns - (clock_.boottime_ns() - started_boottime_ns)};
  if (process.ended) info.ended = ended_at(process);
  store_.update_process(info);
}

void Ingest::publish_mappings(symbolizer::Process& process) {
  if (process.ended) {
    unwind_->remove(process.id);
    return;
  }
  // Mappings that are not in the tables need no copy.
  process.tables.add(UnwindPublisher::has_place_for(process) ? process.maps : nullptr, clock_.monotonic());
  RuntimePlace runtime = runtimes_ == nullptr ? RuntimePlace() : runtimes_->place_of(process);
  const CodePlacePtr code = code_ == nullptr ? nullptr : code_->place_of(process);
  if (runtime.layout == 0 && code != nullptr) runtime.layout = code->layout;
  unwind_->publish(process, runtime, code);
}

void Ingest::publish_remapped() {
  processes_.remapped().take([this](symbolizer::Process& process) { publish_mappings(process); });
  if (code_ != nullptr) code_->forget_old_rows();
}

/// A walk ended in code that the process has made, or beyond it.
void Ingest::note_missed_code(symbolizer::Process& process, MonotonicTime time, const flamed_sample& sample) {
  if ((sample.flags & FLAMED_WALKED_BY_TABLES) == 0 || sample.user_end == FLAMED_END_OUTERMOST ||
      sample.user_end == FLAMED_END_DEPTH_LIMIT || process.anonymous == kNoModule || user_frames_.empty()) {
    return;
  }
  const bool is_last = user_frames_.back().module == process.anonymous;
  const bool was_last = user_frames_.size() > 1 && user_frames_[user_frames_.size() - 2].module == process.anonymous;
  if (!is_last && !was_last) return;
  const bool is_pending = is_last && sample.user_end == FLAMED_END_ROWS_PENDING;
  const auto miss = is_pending ? CodeHeaps::Miss::kPending : CodeHeaps::Miss::kFailed;
  if (!code_->missed(process, time, miss)) return;
  if (const symbolizer::Mapping* const library = code_->library_of(process)) {
    processes_.want_rows(process, *library, time);
  }
}

/// Takes the readings of code that processes have made, and requests those that are due.
void Ingest::look_at_code(MonotonicTime now) {
  recoded_.clear();
  code_->look_again(now, recoded_);
  const auto is_running = [this](const ProcessId& id) {
    const symbolizer::Process* const running = processes_.known().find_running(id.pid);
    return running != nullptr && running->id == id;
  };
  for (const ProcessId& id : recoded_) {
    if (is_running(id)) processes_.watch_mappings(processes_.resolve(id, now), true);
  }
  code_->tidy(now, is_running);
}

/// The names of containers come a moment after their first samples.
void Ingest::republish_containers() {
  const std::unordered_set<std::string> named = containers_->take_named();
  if (named.empty()) return;
  processes_.visit_running([&](symbolizer::Process& process) {
    const bool is_stored = process.published && process.described && process.cgroup != nullptr;
    if (is_stored && named.contains(process.cgroup->container)) publish(process);
  });
}

/// Another file was found to be a runtime: processes may have it.
void Ingest::republish_runtimes() {
  const std::uint64_t edition = runtimes_->edition();
  if (std::exchange(runtimes_told_, edition) == edition) return;
  processes_.visit_running([this](symbolizer::Process& process) {
    if (process.watched && runtimes_->place_of(process).layout != 0) processes_.watch_mappings(process, true);
  });
}

/// Frees names of functions of runtimes, and of threads that held locks (store::holder_frame()), that no stored stack
/// has.
void Ingest::free_functions(MonotonicTime now) {
  if (functions_ == nullptr || now.ns - functions_freed_.ns < kBetweenFreesNs) return;
  functions_freed_ = now;
  if (!functions_->is_crowded()) return;
  const std::array<ModuleId, 2> modules{kKernelModule, kRuntimeModule};
  std::vector<Frame> used = store::frames_of(store_.snapshot(), modules);
  if (runtimes_ != nullptr) runtimes_->append_used(used);
  if (java_ != nullptr) java_->append_used(used);
  functions_->retain(used);
}

/// So that files that no process has mapped any more can be closed.
void Ingest::report_mapped_modules(MonotonicTime now) {
  if (processes_.known().releases() == releases_told_ || now.ns - mapped_told_.ns < kBetweenLooksNs) return;
  releases_told_ = processes_.known().releases();
  mapped_told_ = now;
  mapped_.clear();
  processes_.known().append_mapped_modules(mapped_);
  modules_.note_mapped(mapped_);
}

void Ingest::drop_unused_modules() {
  std::optional<std::vector<ModuleId>> stored = store_.take_live_modules();
  if (!stored && modules_.stats().modules < modules_to_sweep_at_) return;
  std::vector<ModuleId> live = stored ? std::move(*stored) : std::vector<ModuleId>();
  processes_.known().append_mapped_modules(live);
  std::sort(live.begin(), live.end());
  live.erase(std::unique(live.begin(), live.end()), live.end());
  // Until the store drops stacks, only modules that were never sampled can be forgotten: most of them, if every build
  // creates new programs.
  if (stored) {
    modules_.retain(live);
    if (unwind_ != nullptr) unwind_->retain(live);
  } else {
    modules_.forget_unwanted(live);
  }
  modules_to_sweep_at_ = std::max(kFewModules, 2 * modules_.stats().modules);
}

}  // namespace flamed::daemon
