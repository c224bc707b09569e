// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/off_cpu_sums.h"

#include <cmath>
#include <map>
#include <utility>

namespace flamed::daemon {
namespace {

using Place = std::pair<std::uint32_t, std::int32_t>;  // of a thread

struct Sums {
  double blocked = 0;
  double queued = 0;
};

double expanded(std::int64_t ns, std::uint32_t chance) {
  return static_cast<double>(ns) * FLAMED_SURE / static_cast<double>(chance);
}

/// The part of `total` that belongs to a wait with this time, of all with that sum.
std::int64_t part_of(std::int64_t total, double time, double sum) {
  return sum > 0 ? std::llround(static_cast<double>(total) * time / sum) : 0;
}

}  // namespace

std::vector<OffCpuTime> divide_times(std::span<const OffCpuTotal> totals, std::span<const OffCpuWait> waits) {
  std::map<Place, OffCpuTotal> exact;
  for (const OffCpuTotal& total : totals) {
    OffCpuTotal& sum =
        exact.try_emplace({total.tid, total.call}, OffCpuTotal{total.tid, total.tgid, total.call}).first->second;
    sum.blocked_ns += total.blocked_ns;
    sum.queued_ns += total.queued_ns;
  }
  std::map<Place, Sums> taken;
  for (const OffCpuWait& wait : waits) {
    if (wait.chance == 0) continue;
    Sums& sums = taken[{wait.tid, wait.call}];
    sums.blocked += expanded(wait.blocked_ns, wait.chance);
    sums.queued += expanded(wait.queued_ns, wait.chance);
  }
  std::vector<OffCpuTime> times;
  for (const OffCpuWait& wait : waits) {
    const auto total = exact.find({wait.tid, wait.call});
    if (wait.chance == 0 || total == exact.end()) continue;
    const Sums& sums = taken[{wait.tid, wait.call}];
    times.push_back({wait.tid, total->second.tgid, wait.number,
                     part_of(total->second.blocked_ns, expanded(wait.blocked_ns, wait.chance), sums.blocked),
                     part_of(total->second.queued_ns, expanded(wait.queued_ns, wait.chance), sums.queued)});
  }
  for (const auto& [place, total] : exact) {
    const auto sums = taken.find(place);
    const bool has_blocked = sums != taken.end() && sums->second.blocked > 0;
    const bool has_queued = sums != taken.end() && sums->second.queued > 0;
    const OffCpuTime rest{total.tid, total.tgid, 0, has_blocked ? 0 : total.blocked_ns,
                          has_queued ? 0 : total.queued_ns};
    if (rest.blocked_ns != 0 || rest.queued_ns != 0) times.push_back(rest);
  }
  return times;
}

}  // namespace flamed::daemon
