// SPDX-License-Identifier: Apache-2.0
#include "store/query/timed_samples.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "store/query/slot_selection.h"
#include "store/query/stack_builder.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {
namespace {

struct Taken {
  WallTime time;
  std::int64_t period_ns = 0;
  std::uint32_t thread = 0;
  std::uint32_t stack_key = 0;
  std::uint16_t cpu = 0;
};

/// In units of `period_ns`.
void count(const std::vector<TimedSample>& samples, std::int64_t period_ns, StackBuilder& builder) {
  const auto unit_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(period_ns, 1));
  std::vector<std::uint32_t> order(samples.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::uint32_t i) {
    return std::tie(samples[i].thread, samples[i].stack, samples[i].truncation);
  };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  for (std::size_t i = 0; i < order.size();) {
    const TimedSample& first = samples[order[i]];
    std::uint64_t count = 0;
    std::uint64_t ns = 0;
    for (const std::uint32_t begin = order[i]; i < order.size() && key(order[i]) == key(begin); ++i) {
      const auto sample_ns = static_cast<std::uint64_t>(samples[order[i]].period_ns);
      count += sample_ns / unit_ns;
      ns += sample_ns;
    }
    builder.count(first.thread, {first.stack, first.truncation}, count, ns);
  }
}

}  // namespace

Result<TimedSamples> timed_samples(const Snapshot& snapshot, const Selection& selection, const ProfileOptions& options,
                                   FrameNamer& namer, QueryBudget& budget) {
  const SnapshotData& data = snapshot.data();
  SlotSelection slots(data, selection, budget, SlotSelection::Want::kSamples);
  if (slots.has_no_samples()) return SlotSelection::no_samples_error();
  StackBuilder builder(data, selection, options, budget);

  std::vector<Taken> taken;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const SlotBounds& bounds = slots.bounds(slot);
    const std::uint64_t weight = slots.weight(slot);
    const std::int64_t period_ns = bounds.period_ns * static_cast<std::int64_t>(weight);
    const bool collected =
        slots.for_each_sample_of(slot, [&](const LoggedSample& sample, std::uint32_t thread, StackRef ref) {
          if (budget.exhausted() || !builder.see(ref, weight) || !budget.grow()) return;
          taken.push_back({{sample.time.ns + bounds.wall_offset_ns}, period_ns, thread, ref.key(), sample.cpu});
        });
    if (!collected || budget.exhausted()) return budget.error();
  }
  const auto earlier = [](const Taken& a, const Taken& b) { return a.time < b.time; };
  if (!std::is_sorted(taken.begin(), taken.end(), earlier)) std::stable_sort(taken.begin(), taken.end(), earlier);
  builder.name(namer);
  if (!budget.check()) return budget.error();

  TimedSamples answer;
  answer.samples.reserve(taken.size());
  for (const Taken& sample : taken) {
    const auto built = builder.stack(StackRef::from_key(sample.stack_key));
    if (!built) continue;
    answer.samples.push_back(
        {sample.time, builder.thread(sample.thread), built->stack, sample.period_ns, sample.cpu, built->truncation});
  }
  count(answer.samples, slots.facts().period_ns, builder);
  if (budget.exhausted() || !budget.check()) return budget.error();
  static_cast<AnswerFacts&>(answer.stacks) = slots.facts();
  std::move(builder).finish(answer.stacks);
  return answer;
}

}  // namespace flamed::store
