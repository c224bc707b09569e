// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/event_batch.h"

#include <algorithm>

namespace flamed::daemon {

void EventBatch::sort_and_split(MonotonicTime cutoff, EventBatch& later) {
  // What one CPU wrote at the same nanosecond stays in the order in which it was written.
  std::sort(events_.begin(), events_.end(),
            [](const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.word < b.word; });
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
  muted.clear();
}

}  // namespace flamed::daemon
