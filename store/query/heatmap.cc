// SPDX-License-Identifier: Apache-2.0
#include "store/query/heatmap.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/index/stack_states.h"
#include "store/query/slot_selection.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {
namespace {

/// Waiting time by cell. A wait may be in thousands of cells, and is the same in all but the first and the last.
class WaitingCells {
 public:
  explicit WaitingCells(const Heatmap& map) : start_(map.start), rows_(map.rows), cells_(map.counts.size() + 2) {}

  void add(const SlotSelection::PartOfWait& wait) {
    const double from = place_of(wait.from);
    const double to = place_of(wait.to);
    if (to <= from) return;
    const double in_each = static_cast<double>(wait.units) / (to - from);
    const auto first = static_cast<std::size_t>(from);
    const auto last = static_cast<std::size_t>(to);
    if (first == last) {
      cells_[first].alone += static_cast<double>(wait.units);
      return;
    }
    cells_[first].alone += in_each * (static_cast<double>(first + 1) - from);
    cells_[last].alone += in_each * (to - static_cast<double>(last));
    cells_[first + 1].more_from_here += in_each;
    cells_[last].more_from_here -= in_each;
  }

  void add_to(std::vector<std::uint32_t>& counts) const {
    double in_each = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      in_each += cells_[i].more_from_here;
      counts[i] += static_cast<std::uint32_t>(std::llround(std::max(in_each + cells_[i].alone, 0.0)));
    }
  }

 private:
  struct Cell {
    double alone = 0;           ///< in this one
    double more_from_here = 0;  ///< in this one and all later ones
  };

  [[nodiscard]] double place_of(WallTime time) const {
    const double seconds = static_cast<double>(time.ns - start_.ns) / static_cast<double>(kNsPerSecond);
    return std::clamp(seconds * rows_, 0.0, static_cast<double>(cells_.size() - 2));
  }

  const WallTime start_;
  const double rows_;
  std::vector<Cell> cells_;
};

}  // namespace

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

  WaitingCells waiting(map);
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const std::uint64_t weight = slots.weight(slot);
    if (slots.is_waiting(slot)) {
      const bool counted =
          slots.for_each_wait_of(slot, [&](const SlotSelection::PartOfWait& wait, std::uint32_t, StackRef ref) {
            if (!states.has(ref, selection.side)) return;
            waiting.add(wait);
            map.total_samples += wait.units;
            states.count(ref, wait.units, map.quality);
          });
      if (!counted) return budget.error();
      continue;
    }
    const std::int64_t to_map_ns = slots.bounds(slot).wall_offset_ns - map.start.ns;
    const bool counted = slots.for_each_sample_of(slot, [&](const LoggedSample& sample, std::uint32_t, StackRef ref) {
      if (!states.has(ref, selection.side)) return;
      const std::int64_t at = sample.time.ns + to_map_ns;
      if (at < 0 || at / kNsPerSecond >= columns) return;
      const auto column = static_cast<std::size_t>(at / kNsPerSecond);
      const auto row = static_cast<std::size_t>(at % kNsPerSecond * map.rows / kNsPerSecond);
      map.counts[column * map.rows + row] += static_cast<std::uint32_t>(weight);
      map.total_samples += weight;
      states.count(ref, weight, map.quality);
    });
    if (!counted) return budget.error();
  }
  waiting.add_to(map.counts);
  map.most = *std::max_element(map.counts.begin(), map.counts.end());
  return map;
}

}  // namespace flamed::store
