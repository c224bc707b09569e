// SPDX-License-Identifier: Apache-2.0
#include "store/query/heatmap.h"

#include <algorithm>

#include "store/index/stack_states.h"
#include "store/query/slot_selection.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

Result<Heatmap> heatmap(const Snapshot& snapshot, const Selection& selection, std::uint32_t rows, QueryBudget& budget) {
  const SnapshotData& data = snapshot.data();
  SlotSelection slots(data, selection, budget, SlotSelection::Want::kSamples);
  if (slots.has_no_samples()) return SlotSelection::no_samples_error();
  StackStates states(data);

  Heatmap map;
  static_cast<AnswerFacts&>(map) = slots.facts();
  map.rows = std::clamp<std::uint32_t>(rows, 1, 1000);
  std::int64_t into_second = map.used.from.ns % kNsPerSecond;
  if (into_second < 0) into_second += kNsPerSecond;
  map.start = {map.used.from.ns - into_second};
  if (slots.empty()) return map;
  const std::int64_t columns = (map.used.to.ns - map.start.ns + kNsPerSecond - 1) / kNsPerSecond;
  if (!budget.grow(static_cast<std::uint64_t>(columns) * map.rows / 8 + 1)) return budget.error();
  map.columns = static_cast<std::uint32_t>(columns);
  map.counts.assign(std::size_t{map.columns} * map.rows, 0);

  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const std::uint64_t weight = slots.weight(slot);
    const std::int64_t to_map_ns = slots.bounds(slot).wall_offset_ns - map.start.ns;
    const bool counted = slots.for_each_sample_of(slot, [&](const LoggedSample& sample, std::uint32_t, StackRef ref) {
      if (!states.has(ref, selection.side)) return;
      const std::int64_t at = sample.time.ns + to_map_ns;
      if (at < 0 || at / kNsPerSecond >= columns) return;
      const auto column = static_cast<std::size_t>(at / kNsPerSecond);
      const auto row = static_cast<std::size_t>(at % kNsPerSecond * map.rows / kNsPerSecond);
      std::uint32_t& cell = map.counts[column * map.rows + row];
      cell += static_cast<std::uint32_t>(weight);
      map.most = std::max(map.most, cell);
      map.total_samples += weight;
      states.count(ref, weight, map.quality);
    });
    if (!counted) return budget.error();
  }
  return map;
}

}  // namespace flamed::store
