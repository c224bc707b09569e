// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/hung_memory.h"

namespace flamed::daemon {

void HungMemory::add(const Process& process, MonotonicTime now) {
  if (hung_.size() >= kMost) hung_.erase(hung_.begin());
  hung_.push_back({process, now});
}

void HungMemory::forget_before(MonotonicTime time) {
  std::erase_if(hung_, [&](const Hung& hung) { return hung.time < time; });
}

bool HungMemory::is_refused(const Process& process) const {
  std::size_t of_user = 0;
  for (const auto& [hung, time] : hung_) {
    if (hung.pid == process.pid && hung.start_ns == process.start_ns) return true;
    if (hung.user == process.user) ++of_user;
  }
  return of_user >= kMostOfOneUser;
}

}  // namespace flamed::daemon
