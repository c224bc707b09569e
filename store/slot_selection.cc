// SPDX-License-Identifier: Apache-2.0
#include "store/slot_selection.h"

#include <algorithm>
#include <ctime>
#include <set>

#include "store/query.h"

namespace flamed::store {
namespace {

// Who asks for "until now" reads the clock a moment before or after the snapshot is taken.
constexpr std::int64_t kSlackNs = 2 * kNsPerSecond;

void widen(std::optional<WallWindow>& window, const WallWindow& by) {
  if (!window) {
    window = by;
  } else {
    window->from = std::min(window->from, by.from);
    window->to = std::max(window->to, by.to);
  }
}

/// What a slot covers. An open one ends in the future; what it holds ends now.
WallWindow window_of(const SlotBounds& bounds, const SnapshotData& snapshot) {
  const MonotonicTime end = std::max(bounds.start, std::min(bounds.end, snapshot.until));
  return {bounds.wall_start(), {end.ns + bounds.wall_offset_ns}};
}

}  // namespace

std::string to_text(WallTime time) {
  std::int64_t seconds = time.ns / kNsPerSecond;
  if (time.ns % kNsPerSecond < 0) --seconds;
  std::time_t when = seconds;
  std::tm parts{};
  if (::gmtime_r(&when, &parts) == nullptr) return std::to_string(seconds) + " s since 1970";
  char text[64];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::optional<WallWindow> retained_window(const Snapshot& snapshot) {
  std::optional<WallWindow> retained;
  const SnapshotData& data = snapshot.data();
  for (const auto& slot : data.sealed) widen(retained, window_of(slot->bounds, data));
  for (const OpenSlot::View& slot : data.open) widen(retained, window_of(slot.bounds, data));
  return retained;
}

SlotSelection::SlotSelection(const SnapshotData& snapshot, const WallWindow& asked)
    : used_(asked), period_ns_(snapshot.period_ns) {
  std::optional<WallWindow> retained;
  std::optional<WallWindow> used;
  auto take = [&](const SlotBounds& bounds, const Quality& quality) {
    const WallWindow window = window_of(bounds, snapshot);
    widen(retained, window);
    if (asked.to <= window.from || window.to <= asked.from || asked.to <= asked.from) return false;
    widen(used, window);
    quality_ += quality;
    period_ns_ = bounds.period_ns;
    return true;
  };
  for (const auto& slot : snapshot.sealed) {
    if (take(slot->bounds, slot->quality)) slots_.push_back({slot->bounds, &slot->histogram});
  }
  for (const OpenSlot::View& slot : snapshot.open) {
    if (take(slot.bounds, slot.quality)) {
      slots_.push_back({slot.bounds, &still_open_.emplace_back(slot.histogram())});
    }
  }
  if (used) used_ = *used;
  warn(snapshot, asked, retained);
}

void SlotSelection::warn(const SnapshotData& snapshot, const WallWindow& asked, std::optional<WallWindow> retained) {
  if (!retained) {
    warnings_.emplace_back("Nothing is retained yet: the profiler has only just started.");
    return;
  }
  std::string span = to_text(retained->from) + " to " + to_text(retained->to);
  if (asked.to <= asked.from) {
    warnings_.emplace_back("The window is empty: it ends before it begins.");
  } else if (slots_.empty()) {
    warnings_.emplace_back("The window lies outside of what is retained, which is " + span + ".");
  } else if (asked.from < retained->from || asked.to.ns > retained->to.ns + kSlackNs) {
    warnings_.emplace_back("The window lies partly outside of what is retained, which is " + span + ".");
  }
  if (snapshot.budget_dropped_until && asked.from < *snapshot.budget_dropped_until && asked.from < retained->from) {
    warnings_.emplace_back("Minutes up to " + to_text(*snapshot.budget_dropped_until) +
                           " were dropped early to stay within the store's memory budget of " +
                           std::to_string(snapshot.budget_bytes >> 20) + " MiB: a larger budget keeps more.");
  }
  std::set<std::int64_t> periods;
  for (const SelectedSlot& slot : slots_) periods.insert(slot.bounds.period_ns);
  if (periods.size() > 1) {
    warnings_.emplace_back("The sampling period changed within the window (" + std::to_string(periods.size()) +
                           " periods): compare times, not sample counts.");
  }
}

}  // namespace flamed::store
