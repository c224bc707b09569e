// SPDX-License-Identifier: Apache-2.0
//
// Usage: CPU use by process and thread. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/model/answer_facts.h"
#include "store/model/process_info.h"
#include "store/model/profile_options.h"
#include "store/model/query_budget.h"
#include "store/model/wait_reason.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

/// One row of /processes.
struct ProcessUsage {
  ProcessInfo info;
  std::uint64_t samples = 0;
  std::uint64_t cpu_ns = 0;  ///< samples × period
  WaitSums waits_ns{};       ///< the waiting time in it, as far as its reason is known
};

/// A thread that held a lock for which another one waited.
struct LockHolderUsage {
  std::int32_t tid = 0;
  std::string comm;      ///< empty: nothing else is stored of it
  std::uint64_t ns = 0;  ///< so long the other one waited
};

/// One row of /threads.
struct ThreadUsage {
  ProcessInfo process;
  std::int32_t tid = 0;
  std::string comm;  ///< if it had several names, the one with most samples
  std::uint64_t samples = 0;
  std::uint64_t cpu_ns = 0;                ///< samples × period
  WaitSums waits_ns{};                     ///< the waiting time in it, as far as its reason is known
  std::vector<LockHolderUsage> holders{};  ///< of the locks for which it waited, as far as known; longest first
};

/// One row of /processes with groups.
struct GroupUsage {
  std::string name;  ///< ProcessGroups::label()
  /// The query that selects the group: a parameter of the API and its value; empty if there is none.
  std::string parameter;
  std::string value;
  std::size_t processes = 0;
  std::size_t ended = 0;  ///< of them
  std::uint64_t samples = 0;
  std::uint64_t cpu_ns = 0;  ///< samples × period
  WaitSums waits_ns{};       ///< the waiting time in it, as far as its reason is known
};

template <typename Row>
struct UsageTable : AnswerFacts {
  std::vector<Row> rows;  ///< most CPU time first
  std::uint64_t total_samples = 0;
  std::uint64_t total_ns = 0;
};

Result<UsageTable<ProcessUsage>> process_usage(const Snapshot& snapshot, const Selection& selection,
                                               QueryBudget& budget);
/// The same processes, summed by a group that ProcessGroups knows.
Result<UsageTable<GroupUsage>> group_usage(const Snapshot& snapshot, const Selection& selection, Group by,
                                           QueryBudget& budget);
Result<UsageTable<ThreadUsage>> thread_usage(const Snapshot& snapshot, const Selection& selection, QueryBudget& budget);

}  // namespace flamed::store
