// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/process_tracker.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/file.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/proc_text.h"
#include "symbolizer/process/process_look.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kStatLimitBytes = 4096;
/// A running process whose code lies outside of all known mappings is looked at again, but not more often than this.
constexpr std::int64_t kRereadNs = kNsPerSecond;
/// After each look in vain after twice as long, up to so many times: many mappings take long to read.
constexpr std::uint8_t kMostDoublings = 8;
/// Nor after less than so many times as long as the last look took: 65,000 mappings take 30 ms.
constexpr std::int64_t kLooksPart = 500;
/// Nobody tells what is unmapped. With more mappings than vm.max_map_count allows by default, some must be gone.
constexpr std::size_t kMostMappings = 65'536;
constexpr std::int64_t kAskAgainNs = 10 * kNsPerSecond;
/// The same for a file that was closed, as long as it is not known whether it is still the one that it was.
constexpr std::int64_t kAskInDoubtNs = kNsPerSecond / 20;
constexpr std::int64_t kAskJitAgainNs = kNsPerSecond;
/// From when the kernel notes a process's start to when it tells of the fork: microseconds, unless another thread had
/// its turn in between.
constexpr std::int64_t kLongestForkNs = 4 * kNsPerMs;
/// Where user space ends, of programs that do not ask for more. Above, x86-64 has only the [vsyscall] page.
#if defined(__aarch64__)
constexpr std::uint64_t kUserEnd = 1ULL << 48;
#else
constexpr std::uint64_t kUserEnd = 1ULL << 47;
#endif

bool may_look_again(const Process& process, MonotonicTime time) {
  return time.ns - process.looked_at.ns >= std::max(kRereadNs << process.failed_looks, kLooksPart * process.look_ns);
}

}  // namespace

ProcessTracker::ProcessTracker(ModuleTable& modules, const Clock& clock, std::string proc)
    : modules_(modules), clock_(clock), proc_(std::move(proc)) {}

void ProcessTracker::scan() {
  for (const std::int32_t pid : running_pids(proc_)) {
    if (known_.find_running(pid) == nullptr) read_process(pid, clock_.monotonic());
  }
}

Process* ProcessTracker::read_process(std::int32_t pid, MonotonicTime time) {
  ProcessLook look = look_at_process(proc_, pid, clock_, modules_);
  if (!look.alive) return nullptr;
  Process process;
  process.id = look.id;
  process.parent_pid = look.parent_pid;
  process.comm = std::move(look.comm);
  process.executable = std::move(look.executable);
  process.maps = std::move(look.maps);
  process.maps_as_of = look.as_of;
  process.maps_sure_from = look.done;
  process.looked_at = time;
  process.may_have_threads = true;
  process.leader_ended = look.leader_ended;
  // Had all events been told, it would be known: what was mapped before the look is anybody's guess.
  if (events_are_reported_ && time < look.done) process.doubt_from = {};
  return &known_.put(std::move(process));
}

void ProcessTracker::read_again(Process& process, MonotonicTime time) {
  process.looked_at = time;
  const MonotonicTime began = clock_.monotonic();
  ProcessLook look = look_at_process(proc_, process.id.pid, clock_, modules_);
  process.look_ns = clock_.monotonic().ns - began.ns;
  const bool is_in_vain = look.alive && look.maps == nullptr;
  process.failed_looks = is_in_vain ? std::min<std::uint8_t>(process.failed_looks + 1, kMostDoublings) : 0;
  // What is known from before is better than nothing: the process may be about to end, and have no mappings any more.
  const bool has_maps = look.maps != nullptr && (process.maps == nullptr || !look.maps->mappings().empty());
  if (!look.alive || look.id != process.id || !has_maps) return;
  // The samples that are being placed are older than the look: it can show what came in the place of theirs.
  process.earlier_maps = events_are_reported_ ? std::move(process.maps) : nullptr;
  process.maps = std::move(look.maps);
  known_.note_release();
  if (process.earlier_maps != nullptr) process.maps->contest(*process.earlier_maps);
  note_remapping(process);
  process.maps_as_of = look.as_of;
  process.maps_sure_from = look.done;
  process.stale = false;
  if (look.executable.empty()) look.executable = process.executable;
  if (process.comm == look.comm && process.executable == look.executable) return;
  process.comm = std::move(look.comm);
  process.executable = std::move(look.executable);
  note_change(process);
}

MappingSet& ProcessTracker::own(std::shared_ptr<MappingSet>& maps) {
  if (maps == nullptr) {
    maps = std::make_shared<MappingSet>();
  } else if (maps.use_count() > 1) {
    maps = std::make_shared<MappingSet>(*maps);
  }
  return *maps;
}

/// Lets go of what only samples from before the last look at /proc need.
void ProcessTracker::settle(Process& process, MonotonicTime time) {
  if (time < process.maps_sure_from) return;
  process.earlier_maps.reset();
  if (!process.stale) process.doubt_from = Process::kNoDoubt;
}

/// What was mapped at `address` at `time`.
ProcessTracker::Covering ProcessTracker::covering(const Process& process, MonotonicTime time,
                                                  std::uint64_t address) const {
  const Mapping* const now = process.maps == nullptr ? nullptr : process.maps->find(address);
  const bool in_doubt = time >= process.doubt_from;
  if (time >= process.maps_sure_from) {
    // Read again in vain: the process is gone. What was known is still right where nothing was ever replaced.
    if (in_doubt && now != nullptr && now->contested) return {nullptr, true};
    return {now, false};
  }
  const Mapping* const then = process.earlier_maps == nullptr ? nullptr : process.earlier_maps->find(address);
  if (now == nullptr && then == nullptr) return {nullptr, false};
  // Without `then` it is not known when the mapping came, and what was there before.
  if (!in_doubt && (then != nullptr || !events_are_reported_)) return {then != nullptr ? then : now, false};
  // Both the same: nothing else was there in between, unless places like this one change hands.
  const bool is_sure = now != nullptr && then != nullptr && then->continues(*now) && !now->contested;
  return {is_sure ? then : nullptr, !is_sure};
}

void ProcessTracker::on_mapping(MonotonicTime time, const MappingEvent& event) {
  Process* const found = known_.find_running(event.pid);
  if (found == nullptr) {
    // Its FORK was lost, or it ended already and the two records changed places.
    read_process(event.pid, time);
    return;
  }
  Process& process = *found;
  if (event.start + event.length < event.start) return;
  if (process.earlier_maps != nullptr && time <= process.maps_sure_from) {
    own(process.earlier_maps).insert(mapping_of(event, modules_).mapping);
  }
  if (process.maps != nullptr && time <= process.maps_as_of) return;
  settle(process, time);
  // What else is mapped is not known.
  if (process.maps == nullptr) process.stale = true;
  const NewMapping mapped = mapping_of(event, modules_);
  own(process.maps).insert(mapped.mapping);
  note_remapping(process);
  // Whether it is still the same file is to be known by its first sample.
  if (mapped.is_closed) {
    if (const Mapping* const inserted = process.maps->find(event.start)) want_file(process, *inserted, time);
  }
  if (process.maps->mappings().size() > kMostMappings && may_look_again(process, time)) read_again(process, time);
  if (process.maps->mappings().size() > 2 * kMostMappings) {
    // Nor does /proc tell: rather nothing than ever more of which most is gone.
    process.maps = std::make_shared<MappingSet>();
    process.stale = true;
    known_.note_release();
  }
  if (process.executable.empty() && event.file.is_file()) {
    // The first file that is mapped after an exec is the program itself.
    process.executable = std::string(without_deleted_mark(event.path));
    process.program = event.file;
    note_change(process);
  }
}

void ProcessTracker::on_fork(MonotonicTime time, std::int32_t pid, std::int32_t parent_pid) {
  Process* const old = known_.find_running(pid);
  if (pid == parent_pid) {
    if (old != nullptr) old->may_have_threads = true;
    return;
  }
  if (old != nullptr) {
    // Read from /proc already by scan(), which ran after this happened: then it is the same process.
    if (old->maps_as_of >= time && old->id.start_ticks != 0) return;
    end(*old, time);
  }
  Process& child = known_.enter(pid);
  child.parent_pid = parent_pid;
  child.forked_at = time;
  Process* const found = known_.find_running(parent_pid);
  if (found == nullptr) return;
  Process& parent = *found;
  child.parent_start_ticks = parent.id.start_ticks;
  child.comm = parent.comm;
  child.executable = parent.executable;
  child.program = parent.program;
  child.not_dumpable = parent.not_dumpable;
  settle(parent, time);
  const bool before_look = time < parent.maps_sure_from && parent.earlier_maps != nullptr;
  child.maps = before_look ? parent.earlier_maps : parent.maps;
  child.doubt_from = parent.doubt_from;
  child.stale = parent.stale || parent.doubt_from != Process::kNoDoubt;
  // Nothing that was mapped before the fork is news to the child.
  child.maps_as_of = child.maps_sure_from = time;
}

void ProcessTracker::on_exec(MonotonicTime time, std::int32_t pid, std::string_view comm) {
  // A process not heard of before begins here just as well: with nothing mapped.
  Process& process = known_.enter(pid);
  if (process.maps != nullptr && time <= process.maps_as_of && process.id.start_ticks != 0) {
    if (process.earlier_maps != nullptr) process.earlier_maps = std::make_shared<MappingSet>();
    return;
  }
  process.comm = std::string(comm);
  process.executable.clear();
  process.program = {};
  process.described = false;
  process.owner_told = false;
  process.is_kernels = false;
  process.walked_late = false;
  process.may_have_threads = process.leader_ended = false;
  process.failed_looks = 0;
  process.maps = std::make_shared<MappingSet>();
  process.is_new_program = true;
  known_.note_release();
  if (process.exec_id != 0) ++process.exec_id;
  note_remapping(process);
  process.maps_as_of = process.maps_sure_from = time;
  process.earlier_maps.reset();
  // Events of the new program may be among those that were lost.
  process.stale = time < lost_until_;
  process.doubt_from = process.stale ? time : Process::kNoDoubt;
  if (process.stale) process.looked_at = {};
  note_change(process);
}

void ProcessTracker::on_comm(std::int32_t pid, std::string_view comm) {
  Process* const process = known_.find_running(pid);
  if (process == nullptr || process->comm == comm) return;
  process->comm = std::string(comm);
  note_change(*process);
}

void ProcessTracker::on_exit(MonotonicTime time, std::int32_t pid, std::int32_t tid) {
  Process* const process = known_.find_running(pid);
  if (process == nullptr) return;
  if (pid != tid && !process->leader_ended) return;
  // Alive in /proc after this time: the pid's owner before it has ended, not this one.
  if (process->id.start_ticks != 0 && time < process->maps_as_of) return;
  const bool ask = process->may_have_threads || process->stale;
  if (ask && other_thread(proc_, pid)) {
    process->leader_ended = true;
    return;
  }
  end(*process, time);
}

void ProcessTracker::end(Process& process, MonotonicTime time) {
  process.ended = true;
  process.last_seen = time;
  process.only_ended = !process.changed && process.asked_pid_at <= time;
  if (process.asked_pid_at > time) process.detail.command_line.clear();
  note_change(process);
  note_remapping(process);
  // Never sampled and its start never told, its id has no start: a late sample finds it by its pid alone.
  known_.end(process);
}

void ProcessTracker::on_events_lost(MonotonicTime from, MonotonicTime until) {
  exits_missed_ = true;
  lost_until_ = std::max(lost_until_, until);
  known_.visit_running([from](Process& process) {
    settle(process, from);
    process.stale = true;
    process.looked_at = {};
    process.doubt_from = std::min(process.doubt_from, from);
  });
}

void ProcessTracker::on_events_lost(std::int32_t pid, MonotonicTime from) {
  Process* const found = known_.find_running(pid);
  if (found == nullptr) return;
  Process& process = *found;
  settle(process, from);
  process.stale = true;
  process.doubt_from = std::min(process.doubt_from, from);
}

void ProcessTracker::on_no_events() {
  events_are_reported_ = false;
  on_events_lost(Process::kNoDoubt, {});
}

void ProcessTracker::note_change(Process& process) {
  if (process.sampled || process.published) changed_.note(process);
}

void ProcessTracker::note_remapping(Process& process) {
  if (process.watched) remapped_.note(process);
}

void ProcessTracker::watch_mappings(Process& process, bool anew) {
  if (process.watched && !anew) return;
  process.watched = true;
  note_remapping(process);
}

void ProcessTracker::purge(MonotonicTime now) {
  if (std::exchange(exits_missed_, false)) {
    known_.visit_running([&](Process& process) {
      if (::access(proc_path(proc_, process.id.pid, "stat").c_str(), F_OK) != 0) end(process, now);
    });
  }
  if (now.ns - forgot_editions_.ns >= kEditionsNs) {
    known_.visit_running([this](Process& process) { process.tables.forget_replaced(forgot_editions_); });
    forgot_editions_ = now;
  }
  known_.forget_ended(now);
}

void ProcessTracker::prefetch(std::int32_t pid) const {
  const Process* const process = known_.find_running(pid);
  if (process == nullptr) return;
  __builtin_prefetch(process->maps.get());
  __builtin_prefetch(&process->tables);
}

Process& ProcessTracker::resolve(const ProcessId& id, MonotonicTime time) {
  Process* const running = known_.find_running(id.pid);
  if (running != nullptr) {
    Process& process = *running;
    const bool is_estimate_of = process.start_is_estimate && process.id.start_ticks == id.start_ticks + 1;
    if (process.id.start_ticks == 0 || is_estimate_of) set_start(process, id.start_ticks);
    if (process.id.start_ticks == id.start_ticks) process.start_is_estimate = false;
    if (process.id.start_ticks == id.start_ticks) {
      const bool unsure = process.maps == nullptr || process.stale;
      if (unsure && time >= process.maps_sure_from && may_look_again(process, time)) read_again(process, time);
      return process;
    }
  }
  Process* ended = known_.find_ended(id);
  if (ended == nullptr) ended = known_.adopt_ended(id);
  if (ended != nullptr) {
    ended->last_seen = std::max(ended->last_seen, time);
    return *ended;
  }
  // Unknown so far. A pid's next owner starts later than the last one: only the newest can be the one that runs.
  if (running == nullptr || running->id.start_ticks < id.start_ticks) {
    if (running != nullptr) end(*running, time);
    Process* process = read_process(id.pid, time);
    if (process != nullptr && process->id == id) return *process;
  }
  Process gone;
  gone.id = id;
  gone.ended = true;
  gone.last_seen = time;
  return known_.put_ended(std::move(gone));
}

void ProcessTracker::set_start(Process& process, std::uint64_t start_ticks) {
  process.id.start_ticks = start_ticks;
  changed_.note_new_id(process);
  remapped_.note_new_id(process);
}

bool ProcessTracker::learn_start(Process& process) const {
  if (process.id.start_ticks != 0) return true;
  // The kernel notes the start some microseconds before it tells of the fork: soon after a tick, that may be the one
  // before.
  const std::int64_t boottime_ns = process.forked_at.ns + clock_.boottime_ns() - clock_.monotonic().ns;
  const std::uint64_t estimate = static_cast<std::uint64_t>(boottime_ns) / ProcessId::kNsPerTick;
  const bool has_estimate = process.forked_at.ns != 0;
  const bool is_sure = has_estimate && boottime_ns % static_cast<std::int64_t>(ProcessId::kNsPerTick) >= kLongestForkNs;
  if (!process.ended && !is_sure) {
    std::array<char, kStatLimitBytes> buffer;
    const std::optional<StatLine> stat = parse_stat(read_once(proc_path(proc_, process.id.pid, "stat"), buffer));
    // By now the pid may be another's.
    if (stat && (!has_estimate || stat->start_ticks == estimate || stat->start_ticks + 1 == estimate)) {
      process.id.start_ticks = stat->start_ticks;
      return true;
    }
  }
  if (!has_estimate) return false;
  process.id.start_ticks = estimate;
  process.start_is_estimate = true;
  return true;
}

Process* ProcessTracker::parent_of(Process& process) {
  const auto forked = [&](Process& candidate) {
    // A process that got the pid after the parent's end began after the child.
    if (process.forked_at.ns != 0 && candidate.forked_at > process.forked_at) return false;
    if (!learn_start(candidate)) return false;
    const std::uint64_t start = candidate.id.start_ticks;
    if (process.parent_start_ticks != 0) return process.parent_start_ticks == start;
    return process.id.start_ticks == 0 || start <= process.id.start_ticks;
  };
  Process* parent = known_.find_running(process.parent_pid);
  if (parent == nullptr || !forked(*parent)) {
    parent = known_.find_ended({process.parent_pid, process.parent_start_ticks});
    if (parent == nullptr) parent = known_.find_ended({process.parent_pid, 0});
    if (parent == nullptr || !forked(*parent)) return nullptr;
  }
  process.parent_start_ticks = parent->id.start_ticks;
  return parent;
}

/// Returns the module of the file: another one if the file has changed. Then it is replaced in the process's mappings.
ModuleId ProcessTracker::want_file(Process& process, const Mapping& mapping, MonotonicTime now) {
  if (now.ns < mapping.ask_again_ns) return mapping.module;
  const ModuleId module = mapping.module;
  const ModuleTable::Wanted wanted =
      modules_.want({module, {}, {}, process.id.pid, process.parent_pid, mapping.start, mapping.end, process.user});
  mapping.ask_again_ns = now.ns + (wanted.is_in_doubt ? kAskInDoubtNs : kAskAgainNs);
  if (wanted.module == module) return module;
  for (auto* maps : {&process.maps, &process.earlier_maps}) {
    if (*maps != nullptr) own(*maps).replace_module(module, wanted.module);
  }
  note_remapping(process);
  return wanted.module;
}

void ProcessTracker::want_jit(Process& process, MonotonicTime now) {
  if (now.ns < process.ask_jit_again_ns) return;
  process.ask_jit_again_ns = now.ns + kAskJitAgainNs;
  modules_.want_jit(process.id, process.user);
}

StackTrust ProcessTracker::locate(Process& process, MonotonicTime time, std::span<const std::uint64_t> addresses,
                                  std::vector<Frame>& frames, std::optional<std::uint16_t> tables) {
  if (addresses.empty()) return StackTrust::kAll;
  settle(process, time);
  // The program counter is always in code. When no mapping covers it, news of one was missed.
  Covering found = covering(process, time, addresses[0]);
  const bool misses_pc = found.mapping == nullptr && !found.doubtful;
  if (misses_pc && !process.ended && time >= process.maps_sure_from && may_look_again(process, time)) {
    read_again(process, time);
    found = covering(process, time, addresses[0]);
  }

  const bool known = process.maps != nullptr && !process.maps->mappings().empty();
  const bool is_plain = time >= process.maps_sure_from && time < process.doubt_from;
  const MappingSet* const edition = tables ? process.tables.find(*tables) : nullptr;
  const auto is_stale = [&](std::uint64_t address, const Mapping& mapping) {
    if (!tables || (is_plain && edition == process.maps.get())) return false;
    const Mapping* const walked = edition == nullptr ? nullptr : edition->find(address);
    return walked == nullptr || !walked->continues(mapping);
  };
  const Mapping* mapping = nullptr;
  bool is_doubtful = false;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // Callers are known by their return address; the call itself lies before it.
    const std::uint64_t address = i == 0 ? addresses[i] : addresses[i] - 1;
    if (mapping == nullptr || !is_plain || address < mapping->start || address >= mapping->end) {
      if (i > 0) found = covering(process, time, address);
      mapping = found.mapping;
      if (found.doubtful && i > 0) return StackTrust::kDoubt;
      is_doubtful = found.doubtful;
      if (mapping != nullptr && mapping->module >= kFirstFreeModule) {
        const ModuleId before = mapping->module;
        if (want_file(process, *mapping, time) != before) mapping = covering(process, time, address).mapping;
      }
    }
    if (mapping != nullptr && mapping->module != kNoModule) {
      frames.push_back(mapping->frame_at(address));
    } else if (mapping != nullptr) {
      if (process.anonymous == kNoModule) process.anonymous = modules_.anonymous(process.id);
      frames.push_back({process.anonymous, address});
      want_jit(process, time);
    } else if (i == 0 || (!known && address < kUserEnd)) {
      if (process.unmapped == kNoModule) process.unmapped = modules_.unmapped(process.id);
      frames.push_back({process.unmapped, address});
      want_jit(process, time);
    } else {
      return StackTrust::kCut;
    }
    if (is_doubtful) return StackTrust::kDoubt;
    // The address is right. What the tables showed there was something else, and led to no caller of this code.
    if (mapping != nullptr && is_stale(address, *mapping)) return StackTrust::kStale;
  }
  return known ? StackTrust::kAll : StackTrust::kNoMaps;
}

std::shared_ptr<const MappingSet> ProcessTracker::maps_at(Process& process, MonotonicTime time) {
  settle(process, time);
  if (time < process.maps_sure_from || time >= process.doubt_from) return nullptr;
  return process.maps;
}

bool ProcessTracker::is_within_exec(Process& process, MonotonicTime time, std::uint64_t pc) {
  if (!process.is_new_program) return false;
  const std::shared_ptr<const MappingSet> maps = maps_at(process, time);
  if (maps == nullptr) return false;
  process.is_new_program = maps->find(pc) == nullptr;
  return process.is_new_program;
}

StackTrust ProcessTracker::locate_in(const MappingSet& maps, Process& process, MonotonicTime time,
                                     std::span<const std::uint64_t> addresses, std::vector<Frame>& frames) {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::uint64_t address = i == 0 ? addresses[i] : addresses[i] - 1;
    const Mapping* const mapping = maps.find(address);
    if (mapping == nullptr) return StackTrust::kCut;
    Frame frame = mapping->frame_at(address);
    if (mapping->module == kNoModule) {
      if (process.anonymous == kNoModule) process.anonymous = modules_.anonymous(process.id);
      frame = {process.anonymous, address};
      want_jit(process, time);
    } else if (mapping->module >= kFirstFreeModule) {
      frame.module = want_file(process, *mapping, time);
    }
    frames.push_back(frame);
  }
  return StackTrust::kAll;
}

}  // namespace flamed::symbolizer
