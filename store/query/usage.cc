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

/// CPU use of each process, by its index in the ProcessTable. False: the budget is exhausted.
bool total_processes(const SnapshotData& data, const Selection& selection, QueryBudget& budget, AnswerFacts& facts,
                     std::vector<Total>& totals) {
  SlotSelection slots(data, selection, budget);
  StackStates states(data);
  facts = slots.facts();
  totals.resize(data.processes.limit());
  std::vector<std::size_t> others;  // slots
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const auto add = [&](std::uint32_t process, bool /*in_kernel*/, std::uint64_t samples) {
      totals[process].samples += samples;
      totals[process].ns += samples * static_cast<std::uint64_t>(slots.bounds(slot).period_ns);
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
  return total_up(for_each, states, selection.side, totals, facts.quality);
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
  void append_of(std::uint32_t thread, std::vector<LockHolderUsage>& holders) const {
    const auto found = sums_.find(thread);
    if (found == sums_.end()) return;
    for (const auto& [id, ns] : found->second) {
      const auto tid = static_cast<std::int32_t>(id);
      const auto known = std::find_if(holders.begin(), holders.end(), [&](const auto& row) { return row.tid == tid; });
      if (known != holders.end()) {
        known->ns += ns;
      } else {
        holders.push_back({tid, names_.at({data_.threads[thread].process, tid}), ns});
      }
    }
    std::sort(holders.begin(), holders.end(), [](const LockHolderUsage& a, const LockHolderUsage& b) {
      return std::tie(b.ns, a.tid) < std::tie(a.ns, b.tid);
    });
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
  std::vector<Total> totals;
  if (!total_processes(data, selection, budget, table, totals)) return budget.error();
  for (std::uint32_t process = 0; process < totals.size(); ++process) {
    if (totals[process].samples == 0) continue;
    table.rows.push_back({data.info_of(data.processes[process]), totals[process].samples, totals[process].ns});
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
  std::vector<Total> totals;
  if (!total_processes(data, selection, budget, table, totals)) return budget.error();
  const ProcessGroups groups(data, by);
  std::unordered_map<std::string, std::size_t, KeyedTextHash> rows;  // by what selects the group
  for (std::uint32_t process = 0; process < totals.size(); ++process) {
    if (totals[process].samples == 0) continue;
    ProcessGroups::Selector selector = groups.selector(process);
    const auto [row, fresh] = rows.try_emplace(selector.parameter + '\0' + selector.value, table.rows.size());
    if (fresh) {
      table.rows.push_back({groups.label(process), std::move(selector.parameter), std::move(selector.value)});
    }
    GroupUsage& group = table.rows[row->second];
    ++group.processes;
    if (data.processes[process].ended_ns != ProcessRecord::kNoTime) ++group.ended;
    group.samples += totals[process].samples;
    group.cpu_ns += totals[process].ns;
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
  StackStates states(data);
  UsageTable<ThreadUsage> table;
  static_cast<AnswerFacts&>(table) = slots.facts();
  std::vector<Total> totals(data.threads.limit());
  std::unordered_map<std::uint32_t, WaitSums> waits;  // by index in the ThreadTable
  LockHolders held(data);
  const auto for_each = [&](const auto& visit) {
    return slots.for_each_thread([&](const SlotBounds& bounds, std::uint32_t thread, const ThreadStacks& stacks) {
      visit(bounds, thread, stacks);
      if (data.measure == Measure::kCpu) return;
      stacks.for_each([&](StackRef ref, std::uint64_t count) {
        const std::optional<WaitReason> reason = reason_of(data.tree, ref);
        if (!reason || !states.has(ref, selection.side)) return;
        const std::uint64_t ns = count * static_cast<std::uint64_t>(bounds.period_ns);
        waits[thread][static_cast<std::size_t>(*reason)] += ns;
        if (const std::optional<HolderFrame> holder = holder_of(data.tree, ref)) held.add(thread, holder->tid, ns);
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
  const ThreadRecord* previous = nullptr;
  for (std::uint32_t thread : threads) {
    const ThreadRecord& record = data.threads[thread];
    if (previous == nullptr || previous->process != record.process || previous->tid != record.tid) {
      table.rows.push_back(
          {data.info_of(data.processes[record.process]), record.tid, std::string(text_of(record.comm)), 0, 0, {}});
    }
    table.rows.back().samples += totals[thread].samples;
    table.rows.back().cpu_ns += totals[thread].ns;
    if (const auto found = waits.find(thread); found != waits.end()) {
      for (std::size_t reason = 0; reason < kWaitReasons; ++reason) {
        table.rows.back().waits_ns[reason] += found->second[reason];
      }
    }
    held.append_of(thread, table.rows.back().holders);
    previous = &record;
  }
  std::sort(table.rows.begin(), table.rows.end(), [](const ThreadUsage& a, const ThreadUsage& b) {
    return std::tie(b.cpu_ns, a.process.id, a.tid) < std::tie(a.cpu_ns, b.process.id, b.tid);
  });
  finish(table);
  return table;
}

}  // namespace flamed::store
