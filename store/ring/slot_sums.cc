// SPDX-License-Identifier: Apache-2.0
#include "store/ring/slot_sums.h"

#include <algorithm>

namespace flamed::store {

std::shared_ptr<const Histogram> SlotSums::find(SlotRun run) {
  std::lock_guard lock(mutex_);
  const auto found = sums_.find(run);
  if (found == sums_.end()) return nullptr;
  found->second.used_at = ++uses_;
  return found->second.sum;
}

void SlotSums::keep(SlotRun run, std::shared_ptr<const Histogram> sum) {
  const std::size_t bytes = bytes_of(*sum);
  if (bytes > limit_bytes_) return;
  std::lock_guard lock(mutex_);
  if (sums_.contains(run)) return;  // two readers at the same time
  while (used_bytes_ + bytes > limit_bytes_) {
    const auto oldest = std::min_element(
        sums_.begin(), sums_.end(), [](const auto& a, const auto& b) { return a.second.used_at < b.second.used_at; });
    used_bytes_ -= bytes_of(*oldest->second.sum);
    sums_.erase(oldest);
  }
  used_bytes_ += bytes;
  sums_.emplace(run, Kept{std::move(sum), ++uses_});
}

std::size_t SlotSums::used_bytes() const {
  std::lock_guard lock(mutex_);
  return used_bytes_;
}

}  // namespace flamed::store
