// SPDX-License-Identifier: Apache-2.0
#include "store/query/process_parents.h"

#include <algorithm>
#include <string_view>

namespace flamed::store {
namespace {

constexpr std::int32_t kInit = 1;
constexpr std::int32_t kParentOfKernelThreads = 2;
constexpr std::string_view kServiceManager = "systemd";
/// Deeper than real process trees; ends a walk if the known parents form a cycle.
constexpr int kMostAncestors = 1000;

}  // namespace

ProcessParents::ProcessParents(const SnapshotData& snapshot) : snapshot_(snapshot) {
  snapshot.processes.for_each_place([&](std::uint32_t process, const ProcessRecord& record) {
    if (record.in_use()) by_id_.push_back({record.id, process});
  });
  std::sort(by_id_.begin(), by_id_.end(), [](const Known& a, const Known& b) { return a.id < b.id; });
}

std::uint32_t ProcessParents::parent_of(const ProcessRecord& record) const {
  if (record.parent_pid == 0) return kNone;
  // If only its pid is known: the last process with that pid before the child began.
  const ProcessId wanted{record.parent_pid,
                         record.parent_start_ticks != 0 ? record.parent_start_ticks : record.id.start_ticks};
  auto after = std::upper_bound(by_id_.begin(), by_id_.end(), wanted,
                                [](ProcessId id, const Known& known) { return id < known.id; });
  if (after == by_id_.begin()) return kNone;
  const Known& found = *--after;
  if (found.id.pid != wanted.pid) return kNone;
  if (record.parent_start_ticks != 0 && found.id != wanted) return kNone;
  return found.process;
}

std::uint32_t ProcessParents::top_of(std::uint32_t process) const {
  for (int i = 0; i < kMostAncestors; ++i) {
    const std::uint32_t parent = parent_of(snapshot_.processes[process]);
    if (parent == kNone) break;
    const ProcessRecord& record = snapshot_.processes[parent];
    const bool is_manager = record.id.pid == kInit || record.id.pid == kParentOfKernelThreads ||
                            (record.parent_pid == kInit && *record.comm == kServiceManager);
    if (is_manager || record.comm->empty() || !snapshot_.shows(record)) break;
    process = parent;
  }
  return process;
}

}  // namespace flamed::store
