// SPDX-License-Identifier: Apache-2.0
//
// SideBandShares: decides which records of mappings and names are read. Every user may cause as many as programs do
// that start, load libraries or generate code. A process beyond that is muted: its records are skipped for some
// seconds, so that it costs little, and its mappings have to be read from /proc.
//
// Belongs to the reader thread. Makes no system calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace flamed::daemon {

class SideBandShares {
 public:
  struct Limits {
    /// Records after each exec that are not counted: a program's start needs them. So builds, with many short
    /// processes, are never muted. A fork gives none.
    std::uint32_t free_per_program = 64;
    double per_second = 1'000;  ///< allowed for a user's other records, and ...
    double at_once = 10'000;    ///< ... at most so many saved up
    std::int64_t muted_ns = 5 * kNsPerSecond;
  };
  /// Called once for each process that exceeds its free records.
  using UserOf = std::function<std::uint32_t(std::int32_t pid)>;

  SideBandShares(const Limits& limits, UserOf user_of) : limits_(limits), user_of_(std::move(user_of)) {}

  /// Should the record of the process be read? `time` is the record's.
  [[nodiscard]] bool admits(std::int32_t pid, MonotonicTime time) {
    if (Start& start = start_of(pid); start.pid == pid && start.free > 0) {
      --start.free;
      return true;
    }
    if (last_ == nullptr || pid != last_pid_) find(pid);
    Process& process = *last_;
    if (time >= process.muted_until && is_within_share(pid, process, time)) return true;
    if (process.skipped++ == 0) process.muted_from = time;
    if (!process.is_listed) {
      process.is_listed = true;
      muted_.push_back(pid);
    }
    return false;
  }

  /// The process has called exec.
  void began_program(std::int32_t pid);
  /// Its pid may be another's from now on.
  void ended(std::int32_t pid);

  /// A process whose records were skipped since the last call.
  struct Muted {
    std::int32_t pid = 0;
    std::uint32_t user = 0;
    MonotonicTime from;         ///< no record before it was skipped
    std::uint64_t skipped = 0;  ///< since the last call
    bool is_new = false;        ///< it was not muted at the last call
  };
  [[nodiscard]] std::vector<Muted> take_muted();

 private:
  struct Process {
    std::optional<std::uint32_t> user;  ///< once it was looked up
    MonotonicTime muted_until{std::numeric_limits<std::int64_t>::min()};
    MonotonicTime muted_from{};  ///< time of the first skipped record since take_muted()
    std::uint64_t skipped = 0;   ///< since then
    bool is_listed = false;      ///< in muted_
    bool was_muted = false;      ///< at the last take_muted()
  };
  /// A started program and its remaining free records. A later one may replace it: so each start costs one access on a
  /// machine that starts thousands of programs a second.
  struct Start {
    std::int32_t pid = 0;
    std::uint32_t free = 0;
  };
  static constexpr std::size_t kStarts = 4096;
  struct User {
    double left = 0;  ///< records that it may still cause at once
    MonotonicTime at{};
  };

  static Muted report_of(std::int32_t pid, const Process& process);
  /// Keeps what take_muted() has yet to report of it. As a rule there is nothing to forget.
  void forget(std::int32_t pid) {
    if (!processes_.empty()) forget_one_beyond(pid);
  }
  void forget_one_beyond(std::int32_t pid);
  void find(std::int32_t pid);
  [[nodiscard]] Start& start_of(std::int32_t pid) { return starts_[static_cast<std::uint32_t>(pid) % kStarts]; }
  bool is_within_share(std::int32_t pid, Process& process, MonotonicTime time);

  const Limits limits_;
  const UserOf user_of_;
  std::vector<Start> starts_{kStarts};
  std::unordered_map<std::int32_t, Process> processes_;  ///< that exceeded their free records
  std::unordered_map<std::uint32_t, User> users_;
  std::vector<std::int32_t> muted_;  ///< processes for take_muted() to report, and ...
  std::vector<Muted> gone_;          ///< ... those that have ended or run another program
  std::int32_t last_pid_ = 0;
  Process* last_ = nullptr;  ///< the process of last_pid_; null: search for it
};

}  // namespace flamed::daemon
