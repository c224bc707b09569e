// SPDX-License-Identifier: Apache-2.0
//
// CpuAccounts: the kernel's own accounts of CPU time, read periodically and kept as long as samples, so that the
// samples of a window can be compared with them.
//
// The ingest thread writes; readers on any thread work on copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "api/sources.h"
#include "base/clock.h"
#include "base/identity.h"
#include "store/model/process_info.h"
#include "store/model/selection.h"

namespace flamed::daemon {

/// Of the machine: user + nice + system of /proc/stat, see cpu_time.h. Of a process: utime + stime of /proc/PID/stat,
/// in units of 10 ms, for all its threads, even ended ones; the kernel scales them to the time that its scheduler
/// measured (cputime_adjust() in kernel/sched/cputime.c). Between two readings CPU time is interpolated.
class CpuAccounts {
 public:
  /// 8 times a minute, once at its end. A window that is settled for the API (10 s old) has a reading after its end.
  static constexpr std::int64_t kIntervalNs = 7'500 * kNsPerMs;
  /// Readings older than this are thinned out to one a minute.
  static constexpr std::int64_t kDenseNs = 60 * kNsPerMinute;

  struct Limits {
    std::int64_t retention_ns = 24 * 60 * kNsPerMinute;
    /// For processes; the oldest readings are dropped first. A day of a process that is always busy takes 26 KiB.
    std::size_t budget_bytes = 8U << 20;
  };

  /// `proc` is where procfs is mounted.
  CpuAccounts(const Limits& limits, const Clock& clock, std::string proc = "/proc");

  // -- Writer: the ingest thread, or main before it starts ---------------------------------------------------------

  /// Reads the accounts of the machine and of every running process. Call it when sampling begins.
  void begin();
  /// The process was sampled. One call in each round() is enough. Makes no system call.
  void saw(const ProcessId& process);
  /// Changes after each reading.
  [[nodiscard]] std::uint32_t round() const { return round_; }
  /// The process has ended: its account is gone.
  void ended(const ProcessId& process);
  /// All samples before `drained_at` have arrived. At the end of an interval, reads the accounts of the machine and of
  /// the processes that were sampled since the last reading.
  void advance(MonotonicTime drained_at);

  // -- Readers: any thread -------------------------------------------------------------------------------------------

  [[nodiscard]] api::CpuAccount machine(const store::WallWindow& window) const;
  /// If the window ends after the last reading of a running process, reads its account now.
  [[nodiscard]] api::CpuAccount process(const store::WallWindow& window, const store::ProcessInfo& process) const;

  struct Stats {
    std::size_t processes = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Reading {
    WallTime time;
    std::uint64_t cpu_ns = 0;
  };
  using Readings = std::vector<Reading>;  ///< oldest first, at least one
  struct Account {
    Readings readings;
    bool unread_end = false;  ///< it was sampled after the last reading, and gone at the next
  };
  /// Common to all accounts.
  struct Span {
    WallTime began;             ///< when the first readings of all running processes were complete
    bool with_sampling = true;  ///< sampling began then, too: before there are neither samples nor accounts
    WallTime drained_until;     ///< later samples have not arrived yet: accounts are reported up to here
    WallTime seen_until;        ///< samples before this had arrived at the last reading
    WallTime dropped_until;     ///< older readings may have been dropped for the budget
  };

  [[nodiscard]] std::optional<Reading> read_machine() const;
  [[nodiscard]] std::optional<Reading> read_process(const ProcessId& id) const;
  [[nodiscard]] WallTime start_of(const ProcessId& id) const;
  [[nodiscard]] api::CpuAccount last_known(const Account& account, const store::WallWindow& window,
                                           std::uint64_t before) const;
  void begin_again(bool with_sampling);
  void enter(const ProcessId& id, const Reading& reading, WallTime seen_before);
  void tidy(WallTime now);
  void drop_until(WallTime time);
  [[nodiscard]] std::size_t bytes() const;
  static void forget_before(Readings& readings, WallTime time);
  static void thin_out(Readings& readings, WallTime until);
  static std::optional<std::uint64_t> at(const Readings& readings, WallTime time, const Span& span);

  const Limits limits_;
  const Clock& clock_;
  const std::string proc_;

  // Only for the writer.
  std::unordered_set<ProcessId> seen_;  ///< since the last reading
  std::uint32_t round_ = 1;
  std::int64_t interval_ = 0;  ///< number of the current one, since 1970
  std::int64_t minute_ = 0;    ///< likewise
  std::int64_t wall_offset_ns_ = 0;

  mutable std::mutex mutex_;  ///< guards the members below; only the writer changes them
  Span span_;
  Readings machine_;
  std::unordered_map<ProcessId, Account> processes_;
};

}  // namespace flamed::daemon
