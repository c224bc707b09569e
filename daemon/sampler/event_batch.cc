// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/event_batch.h"

#include <algorithm>

namespace flamed::daemon {

/// Each ring is sorted, or nearly: runs are merged pairwise. The merge is stable: events of one CPU at the same
/// nanosecond keep their order.
void EventBatch::sort() {
  const auto is_earlier = [](const Event& a, const Event& b) { return a.time < b.time; };
  std::vector<std::ptrdiff_t>& ends = ends_of_runs_;
  ends.clear();
  for (auto begin = events_.begin(); begin != events_.end();) {
    begin = std::is_sorted_until(begin, events_.end(), is_earlier);
    ends.push_back(begin - events_.begin());
  }
  while (ends.size() > 1) {
    std::ptrdiff_t begin = 0;
    std::size_t merged = 0;
    for (std::size_t i = 0; i < ends.size(); i += 2) {
      const std::ptrdiff_t end = ends[std::min(i + 1, ends.size() - 1)];
      std::inplace_merge(events_.begin() + begin, events_.begin() + ends[i], events_.begin() + end, is_earlier);
      ends[merged++] = begin = end;
    }
    ends.resize(merged);
  }
}

void EventBatch::sort_and_split(MonotonicTime cutoff, EventBatch& later) {
  sort();
  const auto first_later = std::upper_bound(events_.begin(), events_.end(), cutoff,
                                            [](MonotonicTime time, const Event& event) { return time < event.time; });
  for (auto event = first_later; event != events_.end(); ++event) {
    later.append({event->kind, event->comm_is_exec, event->time, body(*event), event->cpu});
  }
  events_.erase(first_later, events_.end());

  std::sort(muted.begin(), muted.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
  const auto muted_later = std::upper_bound(
      muted.begin(), muted.end(), cutoff, [](MonotonicTime time, const auto& process) { return time < process.from; });
  later.muted.insert(later.muted.end(), muted_later, muted.end());
  muted.erase(muted_later, muted.end());
}

void EventBatch::clear() {
  events_.clear();
  memory_.clear();
  counts = {};
  drained_at = {};
  drained_before = {};
  gaps.clear();
  malformed = 0;
  period_ns = 0;
  has_side_band = true;
  side_band_lost_from.reset();
  rounds.clear();
  threads.reset();
  muted.clear();
  code_copies.clear();
}

}  // namespace flamed::daemon
