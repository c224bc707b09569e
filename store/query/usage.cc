// SPDX-License-Identifier: Apache-2.0
#include "store/query/usage.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/keyed_hash.h"
#include "store/index/stack_states.h"
#include "store/query/process_groups.h"
#include "store/query/slot_selection.h"
#include "store/query/stack_reason.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {
namespace {

struct Total {
  std::uint64_t samples = 0;
  std::uint64_t ns = 0;
};

/// CPU use of each thread or process, by its index in its table; `for_each` is a function of SlotSelection. False: the
/// budget is exhausted.
template <typename ForEach>
bool total_up(ForEach&& for_each, StackStates& states, Side side, std::vector<Total>& totals, Quality& quality) {
  return for_each([&](const SlotBounds& bounds, std::uint32_t place, const ThreadStacks& stacks) {
    std::uint64_t samples = 0;
    stacks.for_each([&](StackRef ref, std::uint64_t count) {
      if (!states.has(ref, side)) return;
      samples += count;
      states.count(ref, count, quality);
    });
    totals[place].samples += samples;
    totals[place].ns += samples * static_cast<std::uint64_t>(bounds.period_ns);
  });
}

/// Waiting time by reason, by index in a table.
using WaitsByIndex = std::unordered_map<std::uint32_t, WaitSums>;

/// Adds what these stacks waited, as far as the reason is known.
void add_waits(const SnapshotData& data, StackStates& states, Side side, std::int64_t period_ns,
               const ThreadStacks& stacks, WaitSums& sums) {
  stacks.for_each([&](StackRef ref, std::uint64_t count) {
    const std::optional<WaitReason> reason = reason_of(data.tree, ref);
    if (!reason || !states.has(ref, side)) return;
    sums[static_cast<std::size_t>(*reason)] += count * static_cast<std::uint64_t>(period_ns);
  });
}

void add_sums(const WaitsByIndex& waits, std::uint32_t index, WaitSums& sums) {
  const auto found = waits.find(index);
  if (found == waits.end()) return;
  for (std::size_t reason = 0; reason < kWaitReasons; ++reason) sums[reason] += found->second[reason];
}

struct ProcessTotals {
  std::vector<Total> used;  ///< by index in the ProcessTable
  WaitsByIndex waits;       ///< likewise; none of CPU time
};

/// False: the budget is exhausted.
bool total_processes(const SnapshotData& data, const Selection& selection, QueryBudget& budget, AnswerFacts& facts,
                     ProcessTotals& totals) {
  SlotSelection slots(data, selection, budget);
  StackStates states(data);
  facts = slots.facts();
  totals.used.resize(data.processes.limit());
  if (data.measure != Measure::kCpu) {
    // Sums by side do not know why.
    const auto for_each = [&](const auto& visit) {
      return slots.for_each_process([&](const SlotBounds& bounds, std::uint32_t process, const ThreadStacks& stacks) {
        visit(bounds, process, stacks);
        add_waits(data, states, selection.side, bounds.period_ns, stacks, totals.waits[process]);
      });
    };
    return total_up(for_each, states, selection.side, totals.used, facts.quality);
  }
  std::vector<std::size_t> others;  // slots
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const auto add = [&](std::uint32_t process, bool /*in_kernel*/, std::uint64_t samples) {
      totals.used[process].samples += samples;
      totals.used[process].ns += samples * static_cast<std::uint64_t>(slots.bounds(slot).period_ns);
    };
    if (!slots.for_each_side_of(slot, selection.side, states, facts.quality, add)) others.push_back(slot);
  }
  const auto for_each = [&](const auto& visit) {
    if (others.size() == slots.size()) return slots.for_each_process(visit);
    return std::all_of(others.begin(), others.end(), [&](std::size_t slot) {
      return slots.for_each_thread_of(slot, [&](std::uint32_t thread, const ThreadStacks& stacks) {
        visit(slots.bounds(slot), data.threads[thread].process, stacks);
      });
    });
  };
  return total_up(for_each, states, selection.side, totals.used, facts.quality);
}

using HolderSums = std::unordered_map<std::uint32_t, std::uint64_t>;  ///< nanoseconds by tid

/// The threads that held locks for which one waited, longest first. Their names are those of the thread table, which
/// also has threads that did not wait.
class LockHolders {
 public:
  explicit LockHolders(const SnapshotData& data) : data_(data) {}

  void add(std::uint32_t thread, std::uint32_t holder, std::uint64_t ns) {
    sums_[thread][holder] += ns;
    names_.try_emplace({data_.threads[thread].process, static_cast<std::int32_t>(holder)});
  }
  void find_names() {
    if (names_.empty()) return;
    data_.threads.for_each_place([&](std::uint32_t /*thread*/, const ThreadRecord& record) {
      const auto wanted = names_.find({record.process, record.tid});
      if (wanted != names_.end() && data_.shows(record)) wanted->second = text_of(record.comm);
    });
  }
  void add_of(std::uint32_t thread, HolderSums& sums) const {
    const auto found = sums_.find(thread);
    if (found == sums_.end()) return;
    for (const auto& [id, ns] : found->second) sums[id] += ns;
  }
  /// Of a process's threads.
  [[nodiscard]] std::vector<LockHolderUsage> rows_of(std::uint32_t process, const HolderSums& sums) const {
    std::vector<LockHolderUsage> holders;
    for (const auto& [id, ns] : sums) {
      const auto tid = static_cast<std::int32_t>(id);
      holders.push_back({tid, names_.at({process, tid}), ns});
    }
    std::sort(holders.begin(), holders.end(), [](const LockHolderUsage& a, const LockHolderUsage& b) {
      return std::tie(b.ns, a.tid) < std::tie(a.ns, b.tid);
    });
    return holders;
  }

 private:
  const SnapshotData& data_;
  std::unordered_map<std::uint32_t, HolderSums> sums_;                   // by index in the ThreadTable
  std::map<std::pair<std::uint32_t, std::int32_t>, std::string> names_;  // by process and tid
};

template <typename Row>
void finish(UsageTable<Row>& table) {
  for (const Row& row : table.rows) {
    table.total_samples += row.samples;
    table.total_ns += row.cpu_ns;
  }
}

}  // namespace

Result<UsageTable<ProcessUsage>> process_usage(const Snapshot& snapshot, const Selection& selection,
                                               QueryBudget& budget) {
  const SnapshotData& data = snapshot.data();
  UsageTable<ProcessUsage> table;
  ProcessTotals totals;
  if (!total_processes(data, selection, budget, table, totals)) return budget.error();
  for (std::uint32_t process = 0; process < totals.used.size(); ++process) {
    const Total& used = totals.used[process];
    if (used.samples == 0) continue;
    table.rows.push_back({data.info_of(data.processes[process]), used.samples, used.ns, {}});
    add_sums(totals.waits, process, table.rows.back().waits_ns);
  }
  std::sort(table.rows.begin(), table.rows.end(), [](const ProcessUsage& a, const ProcessUsage& b) {
    return a.cpu_ns != b.cpu_ns ? a.cpu_ns > b.cpu_ns : a.info.id < b.info.id;
  });
  finish(table);
  return table;
}

Result<UsageTable<GroupUsage>> group_usage(const Snapshot& snapshot, const Selection& selection, Group by,
                                           QueryBudget& budget) {
  const SnapshotData& data = snapshot.data();
  UsageTable<GroupUsage> table;
  ProcessTotals totals;
  if (!total_processes(data, selection, budget, table, totals)) return budget.error();
  const ProcessGroups groups(data, by);
  std::unordered_map<std::string, std::size_t, KeyedTextHash> rows;  // by what selects the group
  for (std::uint32_t process = 0; process < totals.used.size(); ++process) {
    if (totals.used[process].samples == 0) continue;
    ProcessGroups::Selector selector = groups.selector(process);
    const auto [row, fresh] = rows.try_emplace(selector.parameter + '\0' + selector.value, table.rows.size());
    if (fresh) {
      table.rows.push_back({groups.label(process), std::move(selector.parameter), std::move(selector.value)});
    }
    GroupUsage& group = table.rows[row->second];
    ++group.processes;
    if (data.processes[process].ended_ns != ProcessRecord::kNoTime) ++group.ended;
    group.samples += totals.used[process].samples;
    group.cpu_ns += totals.used[process].ns;
    add_sums(totals.waits, process, group.waits_ns);
  }
  std::sort(table.rows.begin(), table.rows.end(), [](const GroupUsage& a, const GroupUsage& b) {
    return std::tie(b.cpu_ns, a.name, a.value) < std::tie(a.cpu_ns, b.name, b.value);
  });
  finish(table);
  return table;
}

Result<UsageTable<ThreadUsage>> thread_usage(const Snapshot& snapshot, const Selection& selection,
                                             QueryBudget& budget) {
  const SnapshotData& data = snapshot.data();
  SlotSelection slots(data, selection, budget);
  slots.warn_of_threads();
  StackStates states(data);
  UsageTable<ThreadUsage> table;
  static_cast<AnswerFacts&>(table) = slots.facts();
  std::vector<Total> totals(data.threads.limit());
  WaitsByIndex waits;  // by index in the ThreadTable
  LockHolders held(data);
  const auto for_each = [&](const auto& visit) {
    return slots.for_each_thread([&](const SlotBounds& bounds, std::uint32_t thread, const ThreadStacks& stacks) {
      visit(bounds, thread, stacks);
      if (data.measure == Measure::kCpu) return;
      add_waits(data, states, selection.side, bounds.period_ns, stacks, waits[thread]);
      stacks.for_each([&](StackRef ref, std::uint64_t count) {
        const std::optional<HolderFrame> holder = holder_of(data.tree, ref);
        if (!holder || !states.has(ref, selection.side)) return;
        held.add(thread, holder->tid, count * static_cast<std::uint64_t>(bounds.period_ns));
      });
    });
  };
  if (!total_up(for_each, states, selection.side, totals, table.quality)) return budget.error();

  held.find_names();
  // A thread has a record for each of its names.
  std::vector<std::uint32_t> threads;
  for (std::uint32_t thread = 0; thread < totals.size(); ++thread) {
    if (totals[thread].samples != 0) threads.push_back(thread);
  }
  std::sort(threads.begin(), threads.end(), [&](std::uint32_t a, std::uint32_t b) {
    const ThreadRecord& x = data.threads[a];
    const ThreadRecord& y = data.threads[b];
    return std::tie(x.process, x.tid, totals[b].ns, a) < std::tie(y.process, y.tid, totals[a].ns, b);
  });
  for (std::size_t i = 0; i < threads.size();) {
    const ThreadRecord& first = data.threads[threads[i]];
    ThreadUsage row{data.info_of(data.processes[first.process]), first.tid, std::string(text_of(first.comm))};
    HolderSums holders;
    for (; i < threads.size(); ++i) {
      const std::uint32_t thread = threads[i];
      if (data.threads[thread].process != first.process || data.threads[thread].tid != first.tid) break;
      row.samples += totals[thread].samples;
      row.cpu_ns += totals[thread].ns;
      add_sums(waits, thread, row.waits_ns);
      held.add_of(thread, holders);
    }
    row.holders = held.rows_of(first.process, holders);
    table.rows.push_back(std::move(row));
  }
  std::sort(table.rows.begin(), table.rows.end(), [](const ThreadUsage& a, const ThreadUsage& b) {
    return std::tie(b.cpu_ns, a.process.id, a.tid) < std::tie(a.cpu_ns, b.process.id, b.tid);
  });
  finish(table);
  return table;
}

}  // namespace flamed::store
