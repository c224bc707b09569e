// SPDX-License-Identifier: Apache-2.0
#include "store/query/process_series.h"

#include <algorithm>

#include "store/ring/snapshot_data.h"

namespace flamed::store {
namespace {

constexpr std::size_t kOpen = ~std::size_t{0};
constexpr std::size_t kLeftOut = kOpen - 1;

}  // namespace

Result<ProcessSeries> process_series(const Snapshot& snapshot, const Selection& selection, std::int64_t step_ns,
                                     std::size_t groups, const GroupOf& group_of, QueryBudget& budget) {
  const SnapshotData& data = snapshot.data();
  StepWalk walk(data, selection, budget);
  ProcessSeries series;
  static_cast<AnswerFacts&>(series) = walk.slots().facts();
  const WallWindow& window = selection.window;
  const std::int64_t length_ns = std::max<std::int64_t>(window.to.ns - window.from.ns, 0);
  series.steps = {window.from, step_ns, static_cast<std::size_t>((length_ns + step_ns - 1) / step_ns)};
  if (!budget.grow(series.steps.count * std::max<std::size_t>(groups, 1))) return budget.error();
  series.ns.assign(groups, std::vector<std::uint64_t>(series.steps.count, 0));
  if (series.steps.count == 0) return series;

  std::vector<std::size_t> group_at(data.processes.limit(), kOpen);
  for (std::size_t slot = 0; slot < walk.slots().size(); ++slot) {
    const std::size_t of_counts = series.steps.of({walk.slots().window(slot).to.ns - 1});
    const auto add = [&](const StepWalk::Part& part) {
      std::size_t& group = group_at[part.process];
      if (group == kOpen) group = group_of(data.processes[part.process].id).value_or(kLeftOut);
      if (group != kLeftOut) series.ns[group][part.step] += part.ns();
    };
    if (!walk.for_each_of(slot, series.steps, of_counts, series.quality, add)) return budget.error();
  }
  return series;
}

}  // namespace flamed::store
