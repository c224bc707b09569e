// SPDX-License-Identifier: Apache-2.0
#include "store/query/timeline.h"

#include <algorithm>
#include <string>
#include <vector>

#include "store/query/step_walk.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

/// A step of time whose samples are not kept one by one is made of whole minutes, or of what they are kept by.
std::int64_t whole_steps(std::int64_t step_ns, std::int64_t resolution_ns) {
  return step_ns % resolution_ns == 0 ? step_ns : (step_ns / resolution_ns + 1) * resolution_ns;
}

class TimelineBuilder {
 public:
  TimelineBuilder(const SnapshotData& snapshot, const Selection& selection, QueryBudget& budget)
      : snapshot_(snapshot),
        selection_(selection),
        budget_(budget),
        walk_(snapshot, selection, budget),
        slots_(walk_.slots()),
        states_(walk_.states()) {}

  Result<Timeline> build(std::int64_t step_ns, std::size_t most_processes) {
    Timeline line;
    static_cast<AnswerFacts&>(line) = slots_.facts();
    choose_steps(line, step_ns);
    if (!slots_.empty()) {
      const std::int64_t steps = (line.used.to.ns - line.start.ns + line.step_ns - 1) / line.step_ns;
      if (!budget_.grow(static_cast<std::uint64_t>(steps) * (1 + most_processes))) return budget_.error();
      line.steps.resize(static_cast<std::size_t>(steps));
      if (snapshot_.measure != Measure::kCpu) line.waits.resize(line.steps.size());
    }
    add_lost_and_gaps(line);
    if (most_processes != 0 && !choose_processes(line, most_processes)) return budget_.error();
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!add_slot(line, slot)) return budget_.error();
    }
    return line;
  }

 private:
  void choose_steps(Timeline& line, std::int64_t step_ns) const {
    line.step_ns = std::max(step_ns, kNsPerSecond);
    std::int64_t coarsest_ns = 1;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      coarsest_ns = std::max(coarsest_ns, slots_.resolution_ns(slot));
    }
    if (line.step_ns % coarsest_ns != 0) {
      line.step_ns = whole_steps(line.step_ns, coarsest_ns);
      line.warnings.push_back("Samples of a part of the window are no longer kept one by one: the step is " +
                              std::to_string(line.step_ns / kNsPerSecond) + " seconds instead of the " +
                              std::to_string(std::max(step_ns, kNsPerSecond) / kNsPerSecond) + " asked for.");
    }
    std::int64_t into_step = line.used.from.ns % line.step_ns;
    if (into_step < 0) into_step += line.step_ns;
    line.start = {line.used.from.ns - into_step};
  }

  void add_lost_and_gaps(Timeline& line) const {
    std::optional<WallTime> known_until;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      const WallWindow& window = slots_.window(slot);
      if (slots_.lost(slot) != 0) line.lost.push_back({window, slots_.lost(slot)});
      // Drifting clocks may leave small gaps between consecutive slots.
      if (known_until && window.from.ns - known_until->ns >= kNsPerSecond) {
        line.gaps.push_back({*known_until, window.from});
      }
      known_until = known_until ? std::max(*known_until, window.to) : window.to;
    }
  }

  bool choose_processes(Timeline& line, std::size_t most) {
    std::vector<std::uint64_t> used_ns(snapshot_.processes.limit(), 0);
    const bool counted =
        slots_.for_each_process([&](const SlotBounds& bounds, std::uint32_t process, const ThreadStacks& stacks) {
          std::uint64_t samples = 0;
          stacks.for_each([&](StackRef ref, std::uint64_t count) {
            if (states_.has(ref, selection_.side)) samples += count;
          });
          used_ns[process] += samples * static_cast<std::uint64_t>(bounds.period_ns);
        });
    if (!counted) return false;
    std::vector<std::uint32_t> order;
    for (std::uint32_t process = 0; process < used_ns.size(); ++process) {
      if (used_ns[process] != 0) order.push_back(process);
    }
    const auto more = [&](std::uint32_t a, std::uint32_t b) {
      return used_ns[a] != used_ns[b] ? used_ns[a] > used_ns[b] : snapshot_.processes[a].id < snapshot_.processes[b].id;
    };
    most = std::min(most, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(), more);
    order.resize(most);
    place_of_.assign(snapshot_.processes.limit(), kNone);
    for (std::uint32_t process : order) {
      place_of_[process] = static_cast<std::uint32_t>(line.processes.size());
      line.processes.push_back(
          {snapshot_.info_of(snapshot_.processes[process]), std::vector<TimelineStep>(line.steps.size())});
    }
    return true;
  }

  bool add_slot(Timeline& line, std::size_t slot) {
    const Steps steps{line.start, line.step_ns, line.steps.size()};
    // A slot may begin a bit before its time, since clocks drift; its middle does not.
    const SlotBounds& bounds = slots_.bounds(slot);
    const std::size_t of_counts = steps.of({bounds.wall_start().ns + (bounds.end.ns - bounds.start.ns) / 2});
    return walk_.for_each_of(slot, steps, of_counts, line.quality, [&](const StepWalk::Part& part) {
      add(line.steps[part.step], part);
      const std::uint32_t place = place_of_.empty() ? kNone : place_of_[part.process];
      if (place != kNone) add(line.processes[place].steps[part.step], part);
      if (!line.waits.empty() && part.reason) {
        line.waits[part.step][static_cast<std::size_t>(*part.reason)] += part.ns();
      }
    });
  }

  static void add(TimelineStep& step, const StepWalk::Part& part) {
    (part.in_kernel ? step.kernel_samples : step.user_samples) += part.samples;
    (part.in_kernel ? step.kernel_ns : step.user_ns) += part.ns();
  }

  const SnapshotData& snapshot_;
  const Selection& selection_;
  QueryBudget& budget_;
  StepWalk walk_;
  SlotSelection& slots_;                 ///< of walk_
  StackStates& states_;                  ///< likewise
  std::vector<std::uint32_t> place_of_;  ///< by index in the ProcessTable: index into Timeline::processes
};

}  // namespace

Result<Timeline> timeline(const Snapshot& snapshot, const Selection& selection, std::int64_t step_ns,
                          std::size_t most_processes, QueryBudget& budget) {
  return TimelineBuilder(snapshot.data(), selection, budget).build(step_ns, most_processes);
}

}  // namespace flamed::store
