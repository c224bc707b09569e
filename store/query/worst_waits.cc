// SPDX-License-Identifier: Apache-2.0
#include "store/query/worst_waits.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "store/model/measure.h"
#include "store/query/query.h"
#include "store/query/step_walk.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {
namespace {

bool is_chosen(WaitReason reason) {
  return reason == WaitReason::kSleep || reason == WaitReason::kPoll || reason == WaitReason::kCondition;
}

/// Does a thread that waits so add to the pressure of that minute? Memory that is short is waited for where it is
/// touched, or read again from a disk.
bool is_pressed(WaitReason reason, const PressedMinute& minute) {
  const auto is_high = [&](Resource resource) { return minute.is_high[static_cast<std::size_t>(resource)]; };
  switch (reason) {
    case WaitReason::kRunQueue:
      return is_high(Resource::kCpu);
    case WaitReason::kDisk:
    case WaitReason::kPageFault:
      return is_high(Resource::kIo) || is_high(Resource::kMemory);
    default:
      return false;
  }
}

using Sums = std::map<std::pair<std::uint32_t, WaitReason>, std::uint64_t>;  ///< by index in the ProcessTable

std::vector<WorstWait> worst_of(const SnapshotData& data, const Sums& sums, const PressedMinute& minute,
                                std::size_t most) {
  struct Row {
    bool is_pressed;
    std::uint64_t ns;
    ProcessId process;
    std::uint32_t index;
    WaitReason reason;
  };
  std::vector<Row> rows;
  for (const auto& [of, ns] : sums) {
    rows.push_back({is_pressed(of.second, minute), ns, data.processes[of.first].id, of.first, of.second});
  }
  most = std::min(most, rows.size());
  std::partial_sort(
      rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(most), rows.end(), [](const Row& a, const Row& b) {
        return std::tie(b.is_pressed, b.ns, a.process, a.reason) < std::tie(a.is_pressed, a.ns, b.process, b.reason);
      });
  rows.resize(most);
  std::vector<WorstWait> worst;
  for (const Row& row : rows) worst.push_back({data.info_of(data.processes[row.index]), row.reason, row.ns});
  return worst;
}

}  // namespace

Result<std::vector<std::vector<WorstWait>>> worst_waits(const Snapshot& snapshot, Selection selection,
                                                        std::span<const PressedMinute> minutes, std::size_t most,
                                                        QueryBudget& budget) {
  std::vector<std::vector<WorstWait>> worst(minutes.size());
  if (minutes.empty()) return worst;
  const Snapshot waits = measured(snapshot, Measure::kWait, true);
  const SnapshotData& data = waits.data();
  selection.window = {minutes.front().start, {minutes.back().start.ns + kNsPerMinute}};
  StepWalk walk(data, selection, budget);
  const std::int64_t length_ns = selection.window.to.ns - selection.window.from.ns;
  const Steps steps{selection.window.from, kNsPerMinute, static_cast<std::size_t>(length_ns / kNsPerMinute)};
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> minute_at(steps.count, kNone);
  for (std::size_t i = 0; i < minutes.size(); ++i) minute_at[steps.of(minutes[i].start)] = i;
  Quality quality;
  std::vector<Sums> sums(minutes.size());
  for (std::size_t slot = 0; slot < walk.slots().size(); ++slot) {
    // The clock may have drifted since the slot began.
    const SlotBounds& bounds = walk.slots().bounds(slot);
    const std::size_t of_counts = steps.of({bounds.wall_start().ns + (bounds.end.ns - bounds.start.ns) / 2});
    // Some of its waits may have begun earlier.
    std::size_t first = of_counts;
    std::size_t last = of_counts;
    if (walk.slots().is_exact(slot)) {
      const auto [earliest, latest] = walk.slots().sample_times(slot);
      first = steps.of({earliest.ns + bounds.wall_offset_ns});
      last = steps.of({latest.ns + bounds.wall_offset_ns});
    }
    const auto is_none = [&](std::size_t minute) { return minute == kNone; };
    const auto begin = minute_at.begin() + static_cast<std::ptrdiff_t>(first);
    if (first <= last && std::all_of(begin, begin + static_cast<std::ptrdiff_t>(last - first + 1), is_none)) continue;
    const bool is_counted = walk.for_each_of(slot, steps, of_counts, quality, [&](const StepWalk::Part& part) {
      const std::size_t minute = minute_at[part.step];
      if (minute == kNone || !part.reason || is_chosen(*part.reason)) return;
      sums[minute][{part.process, *part.reason}] += part.ns();
    });
    if (!is_counted) return budget.error();
  }
  for (std::size_t i = 0; i < minutes.size(); ++i) worst[i] = worst_of(data, sums[i], minutes[i], most);
  return worst;
}

}  // namespace flamed::store
