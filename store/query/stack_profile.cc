// SPDX-License-Identifier: Apache-2.0
#include "store/query/stack_profile.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "store/query/slot_selection.h"
#include "store/query/stack_builder.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {
namespace {

struct Row {
  std::uint32_t thread = 0;
  std::uint32_t stack_key = 0;
  std::uint64_t samples = 0;
  std::uint64_t ns = 0;
};

struct BuiltRow {
  StackBuilder::Built built;
  std::uint64_t samples = 0;
  std::uint64_t ns = 0;

  [[nodiscard]] auto key() const { return std::tuple(built.stack, built.truncation); }
};

}  // namespace

Result<StackProfile> build_stacks(const Snapshot& snapshot, const Selection& selection, const ProfileOptions& options,
                                  FrameNamer& namer, QueryBudget& budget) {
  const SnapshotData& data = snapshot.data();
  SlotSelection slots(data, selection, budget);
  StackBuilder builder(data, selection, options, budget);

  std::vector<Row> rows;
  const bool collected =
      slots.for_each_thread([&](const SlotBounds& bounds, std::uint32_t thread, const ThreadStacks& stacks) {
        if (budget.exhausted()) return;
        stacks.for_each([&](StackRef ref, std::uint64_t count) {
          if (!builder.see(ref, count)) return;
          rows.push_back({thread, ref.key(), count, count * static_cast<std::uint64_t>(bounds.period_ns)});
        });
        // One row for each minute with the pair, until they are merged below.
        if (rows.size() / 16 > budget.limits().nodes) static_cast<void>(budget.grow(rows.size()));
      });
  if (!collected || !budget.check()) return budget.error();
  builder.name(namer);
  if (!budget.check()) return budget.error();

  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.thread, a.stack_key) < std::tie(b.thread, b.stack_key);
  });
  std::vector<BuiltRow> of_thread;
  for (std::size_t i = 0; i < rows.size();) {
    const std::uint32_t thread = rows[i].thread;
    of_thread.clear();
    for (; i < rows.size() && rows[i].thread == thread; ++i) {
      if (const auto built = builder.stack(StackRef::from_key(rows[i].stack_key))) {
        of_thread.push_back({*built, rows[i].samples, rows[i].ns});
      }
    }
    std::stable_sort(of_thread.begin(), of_thread.end(),
                     [](const BuiltRow& a, const BuiltRow& b) { return a.key() < b.key(); });
    for (std::size_t j = 0; j < of_thread.size();) {
      BuiltRow sum = of_thread[j];
      for (++j; j < of_thread.size() && of_thread[j].key() == sum.key(); ++j) {
        sum.samples += of_thread[j].samples;
        sum.ns += of_thread[j].ns;
      }
      builder.count(builder.thread(thread), sum.built, sum.samples, sum.ns);
    }
    if (!budget.visit()) return budget.error();
  }
  if (budget.exhausted() || !budget.check()) return budget.error();

  StackProfile profile;
  static_cast<AnswerFacts&>(profile) = slots.facts();
  std::move(builder).finish(profile);
  return profile;
}

}  // namespace flamed::store
