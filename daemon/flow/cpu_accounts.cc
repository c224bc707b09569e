// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/cpu_accounts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "daemon/machine/cpu_time.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/proc_text.h"

namespace flamed::daemon {
namespace {

/// A map's node, an Account and the allocator's overhead.
constexpr std::size_t kAccountBytes = 128;
constexpr std::size_t kMostStatBytes = 4096;
/// NTP slews by less than this in an interval; a larger change is a step, or the machine was suspended.
constexpr std::int64_t kStepNs = kNsPerSecond / 2;
/// Sampling begins a bit before the accounts of all processes are read. Samples from before that are of an earlier run.
constexpr std::int64_t kBeginningNs = 10 * kNsPerSecond;
/// The time between a process's last reading and its end may be at most 1/kUnreadPart of the window.
constexpr std::int64_t kUnreadPart = 100;

std::string seconds(std::int64_t ns) {
  const std::int64_t tenths = ns / (kNsPerSecond / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

api::CpuAccount unknown(std::string reason) { return {std::nullopt, std::move(reason)}; }

std::string name_of(const ProcessId& id) { return "process " + std::to_string(id.pid); }

}  // namespace

CpuAccounts::CpuAccounts(const Limits& limits, const Clock& clock, std::string proc)
    : limits_(limits), clock_(clock), proc_(std::move(proc)) {}

std::optional<CpuAccounts::Reading> CpuAccounts::read_machine() const {
  const WallTime now = clock_.wall();
  const Result<std::int64_t> busy_ns = read_busy_ns(proc_ + "/stat");
  if (!busy_ns) return std::nullopt;
  return Reading{now, static_cast<std::uint64_t>(*busy_ns)};
}

std::optional<CpuAccounts::Reading> CpuAccounts::read_process(const ProcessId& id) const {
  const WallTime now = clock_.wall();
  std::array<char, kMostStatBytes> buffer;
  const auto stat = symbolizer::parse_stat(read_once(symbolizer::proc_path(proc_, id.pid, "stat"), buffer));
  if (!stat || stat->start_ticks != id.start_ticks) return std::nullopt;
  return Reading{now, stat->cpu_ticks * ProcessId::kNsPerTick};
}

/// Exact to a tick.
WallTime CpuAccounts::start_of(const ProcessId& id) const {
  const auto started_ns = static_cast<std::int64_t>(id.start_ticks * ProcessId::kNsPerTick);
  return {clock_.wall().ns - clock_.boottime_ns() + started_ns};
}

void CpuAccounts::begin() { begin_again(true); }

void CpuAccounts::begin_again(bool with_sampling) {
  wall_offset_ns_ = clock_.wall_offset_ns();
  interval_ = clock_.wall().ns / kIntervalNs;
  minute_ = clock_.wall().ns / kNsPerMinute;
  seen_.clear();
  ++round_;
  std::unordered_map<ProcessId, Account> processes;
  for (const std::int32_t pid : symbolizer::running_pids(proc_)) {
    const WallTime now = clock_.wall();
    std::array<char, kMostStatBytes> buffer;
    const auto stat = symbolizer::parse_stat(read_once(symbolizer::proc_path(proc_, pid, "stat"), buffer));
    if (stat) processes[{pid, stat->start_ticks}].readings = {{now, stat->cpu_ticks * ProcessId::kNsPerTick}};
  }
  Readings machine;
  if (const auto reading = read_machine()) machine.push_back(*reading);

  const std::lock_guard lock(mutex_);
  const WallTime now = clock_.wall();
  span_ = {now, with_sampling, now, now, {}};
  machine_ = std::move(machine);
  processes_ = std::move(processes);
}

void CpuAccounts::saw(const ProcessId& process) { seen_.insert(process); }

void CpuAccounts::ended(const ProcessId& process) {
  if (seen_.erase(process) == 0) return;
  const std::lock_guard lock(mutex_);
  if (const auto known = processes_.find(process); known != processes_.end()) known->second.unread_end = true;
}

void CpuAccounts::advance(MonotonicTime drained_at) {
  const WallTime now = clock_.wall();
  const std::int64_t interval = now.ns / kIntervalNs;
  const std::int64_t offset_ns = clock_.wall_offset_ns();
  {
    const std::lock_guard lock(mutex_);
    span_.drained_until = std::max(span_.drained_until, WallTime{drained_at.ns + wall_offset_ns_});
  }
  if (interval == interval_) return;
  if (offset_ns - wall_offset_ns_ > kStepNs || offset_ns - wall_offset_ns_ < -kStepNs) {
    begin_again(false);
    return;
  }
  interval_ = interval;
  wall_offset_ns_ = offset_ns;

  const std::optional<Reading> machine = read_machine();
  std::vector<std::pair<ProcessId, std::optional<Reading>>> processes;
  processes.reserve(seen_.size());
  for (const ProcessId& id : seen_) processes.emplace_back(id, read_process(id));
  seen_.clear();
  ++round_;

  {
    const std::lock_guard lock(mutex_);
    if (machine && (machine_.empty() || machine_.back().time < machine->time)) machine_.push_back(*machine);
    const WallTime seen_before = span_.seen_until;
    for (const auto& [id, reading] : processes) {
      if (reading) {
        enter(id, *reading, seen_before);
      } else if (const auto known = processes_.find(id); known != processes_.end()) {
        known->second.unread_end = true;
      }
    }
    span_.seen_until = std::max(span_.seen_until, WallTime{drained_at.ns + offset_ns});
  }
  if (now.ns / kNsPerMinute != minute_) {
    minute_ = now.ns / kNsPerMinute;
    tidy(now);
  }
}

/// A process that was not sampled before `seen_before` used hardly any CPU until then: its CPU time is counted after
/// that.
void CpuAccounts::enter(const ProcessId& id, const Reading& reading, WallTime seen_before) {
  const auto [place, is_new] = processes_.try_emplace(id);
  Readings& readings = place->second.readings;
  if (is_new) {
    const WallTime start = start_of(id);
    const bool had_none = start >= span_.began && start >= span_.dropped_until;
    if (had_none && start < reading.time) readings.push_back({start, 0});
  }
  if (!readings.empty() && readings.back().time < seen_before && seen_before < reading.time) {
    readings.push_back({seen_before, readings.back().cpu_ns});
  }
  if (!readings.empty() && readings.back().time >= reading.time) return;
  const std::uint64_t least = readings.empty() ? 0 : readings.back().cpu_ns;
  readings.push_back({reading.time, std::max(least, reading.cpu_ns)});
}

void CpuAccounts::tidy(WallTime now) {
  const WallTime horizon{now.ns - limits_.retention_ns};
  // Processes that ran all the time without samples stay known from the horizon on.
  std::vector<std::pair<ProcessId, std::optional<Reading>>> silent;
  for (const auto& [id, account] : processes_) {
    if (account.readings.back().time < horizon) silent.emplace_back(id, read_process(id));
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [id, reading] : silent) {
    if (reading) {
      // It was not sampled since: it used hardly any CPU before the horizon, or up to the last reading of others.
      Readings& readings = processes_[id].readings;
      const std::uint64_t before = readings.back().cpu_ns;
      readings = {{horizon, before}};
      if (horizon < span_.seen_until && span_.seen_until < reading->time)
        readings.push_back({span_.seen_until, before});
      readings.push_back({reading->time, std::max(before, reading->cpu_ns)});
    } else {
      processes_.erase(id);
    }
  }
  const WallTime dense_from{now.ns - kDenseNs};
  forget_before(machine_, horizon);
  thin_out(machine_, dense_from);
  for (auto& [id, account] : processes_) {
    forget_before(account.readings, horizon);
    thin_out(account.readings, dense_from);
  }
  WallTime dropped = std::max(span_.dropped_until, horizon);
  while (bytes() > limits_.budget_bytes && now.ns - dropped.ns > kIntervalNs) {
    dropped.ns += std::max(kIntervalNs, (now.ns - dropped.ns) / 8);
    drop_until(dropped);
  }
}

void CpuAccounts::drop_until(WallTime time) {
  span_.dropped_until = time;
  for (auto place = processes_.begin(); place != processes_.end();) {
    Readings& readings = place->second.readings;
    forget_before(readings, time);
    place = readings.back().time < time ? processes_.erase(place) : std::next(place);
  }
}

std::size_t CpuAccounts::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [id, account] : processes_) {
    bytes += kAccountBytes + account.readings.capacity() * sizeof(Reading);
  }
  return bytes;
}

/// Drops readings before `time` but the last one, which has the CPU time until then.
void CpuAccounts::forget_before(Readings& readings, WallTime time) {
  const auto after = std::find_if(readings.begin(), readings.end(), [&](const Reading& r) { return r.time > time; });
  if (after - readings.begin() < 2) return;
  readings.erase(readings.begin(), after - 1);
  readings.shrink_to_fit();
}

/// Drops readings before `until` whose neighbours are at most a minute apart.
void CpuAccounts::thin_out(Readings& readings, WallTime until) {
  if (readings.size() < 3 || readings.front().time >= until) return;
  std::size_t kept = 1;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const bool needed = i + 1 == readings.size() || readings[i].time >= until ||
                        readings[i + 1].time.ns - readings[kept - 1].time.ns > kNsPerMinute + kNsPerSecond;
    if (needed) readings[kept++] = readings[i];
  }
  if (kept == readings.size()) return;
  readings.resize(kept);
  readings.shrink_to_fit();
}

/// The account at a time up to the last reading; empty if there is no reading that early.
std::optional<std::uint64_t> CpuAccounts::at(const Readings& readings, WallTime time, const Span& span) {
  const Reading& first = readings.front();
  if (time <= first.time) {
    const bool is_start = first.cpu_ns == 0 || time == first.time;
    const bool of_beginning = span.with_sampling && first.time <= span.began && span.began.ns - time.ns < kBeginningNs;
    if (!is_start && !of_beginning) return std::nullopt;
    return first.cpu_ns;
  }
  const auto next =
      std::find_if(readings.begin(), readings.end(), [&](const Reading& reading) { return reading.time >= time; });
  if (next == readings.end()) return readings.back().cpu_ns;
  const Reading& before = *(next - 1);
  const double part =
      static_cast<double>(time.ns - before.time.ns) / static_cast<double>(next->time.ns - before.time.ns);
  return before.cpu_ns + static_cast<std::uint64_t>(part * static_cast<double>(next->cpu_ns - before.cpu_ns));
}

api::CpuAccount CpuAccounts::machine(const store::WallWindow& window) const {
  Readings readings;
  Span span;
  {
    const std::lock_guard lock(mutex_);
    readings = machine_;
    span = span_;
  }
  if (readings.empty()) return unknown("/proc/stat could not be read");
  const WallTime to = std::min(window.to, span.drained_until);
  if (to > readings.back().time) {
    const std::optional<Reading> now = read_machine();
    if (!now) return unknown("/proc/stat could not be read");
    if (now->time > readings.back().time && now->cpu_ns >= readings.back().cpu_ns) readings.push_back(*now);
  }
  const std::optional<std::uint64_t> before = at(readings, window.from, span);
  const std::optional<std::uint64_t> after = at(readings, to, span);
  if (!before || !after) {
    return unknown(
        "the kernel's accounts were not read before the window began: they are read anew after the "
        "clock was set or the machine was suspended");
  }
  return {*after - std::min(*before, *after), {}};
}

/// For a process whose last reading is before the window's end, and that used CPU since.
api::CpuAccount CpuAccounts::last_known(const Account& account, const store::WallWindow& window,
                                        std::uint64_t before) const {
  const WallTime from = std::max(window.from, account.readings.front().time);
  const std::int64_t unread_ns = window.to.ns - account.readings.back().time.ns;
  if (unread_ns > kIntervalNs || unread_ns > (window.to.ns - from.ns) / kUnreadPart) {
    return unknown("it ended between readings of its CPU time, " + seconds(unread_ns) + " after the last one");
  }
  const std::uint64_t last = account.readings.back().cpu_ns;
  return {last - std::min(before, last), {}};
}

api::CpuAccount CpuAccounts::process(const store::WallWindow& window, const store::ProcessInfo& process) const {
  Account account;
  Span span;
  {
    const std::lock_guard lock(mutex_);
    span = span_;
    if (const auto known = processes_.find(process.id); known != processes_.end()) account = known->second;
  }
  Readings& readings = account.readings;
  const WallTime start = start_of(process.id);
  store::WallWindow lived{window.from, std::min(window.to, span.drained_until)};
  if (process.ended) lived.to = std::min(lived.to, *process.ended);
  if (lived.to <= lived.from || lived.to <= start) return {0, {}};
  if (readings.empty()) {
    // It may have started after the last readings.
    if (process.ended) {
      const bool is_of_earlier_run = *process.ended <= span.began;
      return unknown(
          name_of(process.id) + " ended before " +
          (is_of_earlier_run ? "flamed was started, and its CPU time is not on disk" : "its CPU time was read"));
    }
    if (start < span.began || start < span.dropped_until) {
      return unknown("readings of the CPU time of " + name_of(process.id) + " are no longer kept, or there was none");
    }
    readings.push_back({start, 0});
  }
  const std::optional<std::uint64_t> before = at(readings, lived.from, span);
  if (!before) {
    return unknown("the CPU time of " + name_of(process.id) +
                   " was not read before the window began, and it is not kept on disk");
  }
  bool unread = false;
  if (lived.to > readings.back().time && (account.unread_end || lived.to > span.seen_until)) {
    const std::optional<Reading> now = process.ended ? std::nullopt : read_process(process.id);
    if (now && now->time > readings.back().time) {
      if (readings.back().time < span.seen_until && span.seen_until < now->time) {
        readings.push_back({span.seen_until, readings.back().cpu_ns});
      }
      readings.push_back({now->time, std::max(readings.back().cpu_ns, now->cpu_ns)});
    } else {
      unread = !now;
    }
  }
  if (unread) return last_known(account, lived, *before);
  const std::uint64_t after = at(readings, lived.to, span).value_or(readings.back().cpu_ns);
  return {after - std::min(*before, after), {}};
}

CpuAccounts::Stats CpuAccounts::stats() const {
  const std::lock_guard lock(mutex_);
  return {processes_.size(), bytes()};
}

}  // namespace flamed::daemon
