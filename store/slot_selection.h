// SPDX-License-Identifier: Apache-2.0
//
// SlotSelection: the slots of a snapshot that a window touches, and what a person must know about how well they answer
// the question. A local of one query; must not outlive the snapshot.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "store/profile.h"
#include "store/quality.h"
#include "store/slot.h"
#include "store/snapshot_data.h"

namespace flamed::store {

struct SelectedSlot {
  SlotBounds bounds;
  const Histogram* histogram = nullptr;
};

class SlotSelection {
 public:
  SlotSelection(const SnapshotData& snapshot, const WallWindow& asked);
  SlotSelection(const SlotSelection&) = delete;
  SlotSelection& operator=(const SlotSelection&) = delete;

  [[nodiscard]] const std::vector<SelectedSlot>& slots() const { return slots_; }
  /// Rounded outwards to the slots and cut to what is retained. As asked when no slot was touched.
  [[nodiscard]] const WallWindow& used() const { return used_; }
  /// Whole machine.
  [[nodiscard]] const Quality& quality() const { return quality_; }
  /// Of the newest slot used.
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void warn(const SnapshotData& snapshot, const WallWindow& asked, std::optional<WallWindow> retained);

  std::vector<SelectedSlot> slots_;
  std::deque<Histogram> still_open_;  ///< histograms of open slots, made for this query; their addresses stay
  WallWindow used_;
  Quality quality_;
  std::int64_t period_ns_ = 0;
  std::vector<std::string> warnings_;
};

/// "2026-01-31T12:34:56Z"
std::string to_text(WallTime time);

}  // namespace flamed::store
