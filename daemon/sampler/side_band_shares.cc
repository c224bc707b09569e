// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/side_band_shares.h"

#include <algorithm>

namespace flamed::daemon {
namespace {

/// Beyond this all are forgotten, including processes whose end was not reported.
constexpr std::size_t kMostProcesses = 65'536;
constexpr std::size_t kMostUsers = 4'096;

}  // namespace

void SideBandShares::find(std::int32_t pid) {
  if (processes_.size() >= kMostProcesses && processes_.count(pid) == 0) {
    for (const std::int32_t muted : std::vector<std::int32_t>(muted_)) forget(muted);
    processes_.clear();
  }
  last_ = &processes_[pid];  // its address does not change when others are added or removed
  last_pid_ = pid;
}

bool SideBandShares::is_within_share(std::int32_t pid, Process& process, MonotonicTime time) {
  if (!process.user) process.user = user_of_(pid);
  if (users_.size() >= kMostUsers && users_.count(*process.user) == 0) users_.clear();
  const auto [found, is_new] = users_.try_emplace(*process.user, User{limits_.at_once, time});
  User& user = found->second;
  // Records of two CPUs are not in the order of time.
  const std::int64_t passed_ns = std::max<std::int64_t>(time.ns - user.at.ns, 0);
  user.left = std::min(limits_.at_once, user.left + limits_.per_second * static_cast<double>(passed_ns) / kNsPerSecond);
  user.at = std::max(user.at, time);
  if (user.left >= 1) {
    user.left -= 1;
    return true;
  }
  process.muted_until = MonotonicTime{time.ns + limits_.muted_ns};
  return false;
}

void SideBandShares::began_program(std::int32_t pid) {
  forget(pid);
  start_of(pid) = {pid, limits_.free_per_program};
}

void SideBandShares::ended(std::int32_t pid) {
  forget(pid);
  if (Start& start = start_of(pid); start.pid == pid) start.free = 0;
}

void SideBandShares::forget_one_beyond(std::int32_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  if (found->second.is_listed) std::erase(muted_, pid);
  if (found->second.skipped > 0) gone_.push_back(report_of(pid, found->second));
  if (last_ == &found->second) last_ = nullptr;
  processes_.erase(found);
}

SideBandShares::Muted SideBandShares::report_of(std::int32_t pid, const Process& process) {
  return {pid, *process.user, process.muted_from, process.skipped, !process.was_muted};
}

std::vector<SideBandShares::Muted> SideBandShares::take_muted() {
  std::vector<Muted> told = std::exchange(gone_, {});
  std::vector<std::int32_t> still;
  for (const std::int32_t pid : muted_) {
    const auto found = processes_.find(pid);
    if (found == processes_.end()) continue;
    Process& process = found->second;
    if (process.skipped == 0) {
      process.is_listed = process.was_muted = false;
      continue;
    }
    told.push_back(report_of(pid, process));
    process.skipped = 0;
    process.was_muted = true;
    still.push_back(pid);
  }
  muted_ = std::move(still);
  return told;
}

}  // namespace flamed::daemon
