// SPDX-License-Identifier: Apache-2.0
//
// StepWalk: visits the samples of a selection by steps of equal length on the wall clock. A local of one query; must
// not outlive its arguments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "store/index/stack_states.h"
#include "store/model/measure.h"
#include "store/model/query_budget.h"
#include "store/model/selection.h"
#include "store/query/slot_selection.h"
#include "store/query/stack_reason.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {

struct Steps {
  WallTime start;  ///< of the first step
  std::int64_t step_ns = kNsPerSecond;
  std::size_t count = 0;

  /// The step that the time is in; for times before the first or after the last step, that step. `count` is not 0.
  [[nodiscard]] std::size_t of(WallTime time) const {
    const std::int64_t step = (time.ns - start.ns) / step_ns;
    return static_cast<std::size_t>(std::clamp<std::int64_t>(step, 0, static_cast<std::int64_t>(count) - 1));
  }
};

class StepWalk {
 public:
  StepWalk(const SnapshotData& snapshot, const Selection& selection, QueryBudget& budget)
      : snapshot_(snapshot),
        selection_(selection),
        budget_(budget),
        slots_(snapshot, selection, budget),
        states_(snapshot) {}

  [[nodiscard]] SlotSelection& slots() { return slots_; }
  [[nodiscard]] const SlotSelection& slots() const { return slots_; }
  [[nodiscard]] StackStates& states() { return states_; }

  /// One kind of samples of a process in a step.
  struct Part {
    std::size_t step = 0;
    std::int64_t period_ns = 0;
    std::uint32_t process = 0;
    bool in_kernel = false;
    std::optional<WaitReason> reason{};  ///< of a stack that waits
    std::uint64_t samples = 0;

    [[nodiscard]] std::uint64_t ns() const { return samples * static_cast<std::uint64_t>(period_ns); }
  };

  /// visit(const Part&). Samples that are not kept one by one are all in the step `of_counts`. Counts the samples in
  /// `quality`. False: the budget is exhausted.
  template <typename F>
  [[nodiscard]] bool for_each_of(std::size_t slot, const Steps& steps, std::size_t of_counts, Quality& quality,
                                 F&& visit) {
    const SlotBounds& bounds = slots_.bounds(slot);
    const auto step_at = [&](MonotonicTime time) { return steps.of({time.ns + bounds.wall_offset_ns}); };
    const auto visit_stack = [&](std::size_t step, std::uint32_t thread, StackRef ref, std::uint64_t samples) {
      if (!states_.has(ref, selection_.side)) return;
      states_.count(ref, samples, quality);
      visit(Part{step, bounds.period_ns, snapshot_.threads[thread].process, states_.of(ref.stack).has_kernel(),
                 reason_of(snapshot_.tree, ref), samples});
    };
    if (slots_.is_exact(slot)) {
      const auto [first, last] = slots_.sample_times(slot);
      if (step_at(first) != step_at(last) && slots_.is_waiting(slot)) {
        return slots_.for_each_wait_of(
            slot, [&](const SlotSelection::PartOfWait& wait, std::uint32_t thread, StackRef ref) {
              for_each_step_of(wait, steps,
                               [&](std::size_t step, std::uint64_t units) { visit_stack(step, thread, ref, units); });
            });
      }
      if (step_at(first) != step_at(last)) {
        return slots_.for_each_sample_of(slot, [&](const LoggedSample& sample, std::uint32_t thread, StackRef ref) {
          visit_stack(step_at(sample.time), thread, ref, slots_.weight(slot));
        });
      }
      of_counts = step_at(first);
    }
    const auto visit_side = [&](std::uint32_t process, bool in_kernel, std::uint64_t samples) {
      visit(Part{of_counts, bounds.period_ns, process, in_kernel, std::nullopt, samples});
    };
    // Only stacks say why.
    const bool by_stack = snapshot_.measure != Measure::kCpu;
    if (!by_stack && slots_.for_each_side_of(slot, selection_.side, states_, quality, visit_side))
      return budget_.check();
    return slots_.for_each_thread_of(slot, [&](std::uint32_t thread, const ThreadStacks& stacks) {
      stacks.for_each([&](StackRef ref, std::uint64_t count) { visit_stack(of_counts, thread, ref, count); });
    });
  }

 private:
  /// visit(step, units) for its part in each step.
  template <typename F>
  static void for_each_step_of(const SlotSelection::PartOfWait& wait, const Steps& steps, F&& visit) {
    const auto length = static_cast<double>(wait.to.ns - wait.from.ns);
    std::uint64_t told = 0;
    for (std::size_t step = steps.of(wait.from); told < wait.units; ++step) {
      const bool is_last = step >= steps.of({wait.to.ns - 1});
      const std::int64_t until_ns = steps.start.ns + static_cast<std::int64_t>(step + 1) * steps.step_ns - wait.from.ns;
      const auto units =
          is_last
              ? wait.units
              : static_cast<std::uint64_t>(static_cast<double>(wait.units) * static_cast<double>(until_ns) / length);
      if (units > told) visit(step, units - told);
      told = std::max(told, units);
    }
  }

  const SnapshotData& snapshot_;
  const Selection& selection_;
  QueryBudget& budget_;
  SlotSelection slots_;
  StackStates states_;
};

}  // namespace flamed::store
