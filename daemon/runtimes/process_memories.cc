// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/process_memories.h"

#include <cerrno>
#include <utility>

namespace flamed::daemon {

Result<std::shared_ptr<const Fd>> ProcessMemories::open(const Owner& owner) {
  if (is_stuck(owner.user)) return stuck_error();
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(owner.process);
    if (found != open_.end() && found->second.exec_id == owner.exec_id) return found->second.file;
  }
  Result<Fd> opened = opener_.open_memory(owner.process);
  if (!opened) return std::move(opened).error();
  auto file = std::make_shared<const Fd>(std::move(opened).value());
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = open_.insert_or_assign(owner.process, Memory{owner.exec_id, file});
  if (is_new) opened_.push_back(owner.process);
  if (opened_.size() > kMostOpen) {
    open_.erase(opened_.front());
    opened_.pop_front();
  }
  return file;
}

void ProcessMemories::note_failure(const Owner& owner, const Error& error, std::int64_t took_ns) {
  if (error.code() == EAGAIN || error.code() == EBUSY || took_ns < kStuckNs) return;
  const std::lock_guard lock(mutex_);
  std::set<ProcessId>& stuck = stuck_[owner.user];
  if (stuck.size() < kMostStuck) stuck.insert(owner.process);
}

bool ProcessMemories::is_stuck(std::uint32_t user) const {
  const std::lock_guard lock(mutex_);
  const auto found = stuck_.find(user);
  return found != stuck_.end() && found->second.size() >= kMostStuck;
}

Error ProcessMemories::stuck_error() { return Error("memory of processes of its user does not answer", ETIMEDOUT); }

}  // namespace flamed::daemon
