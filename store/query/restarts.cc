// SPDX-License-Identifier: Apache-2.0
#include "store/query/restarts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>

#include "store/model/container_text.h"
#include "store/query/process_parents.h"
#include "store/query/thread_filter.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {
namespace {

/// Start times have a resolution of 10 ms.
constexpr std::int64_t kSlackNs = 100 * kNsPerMs;
/// Below one parent, programs that end sooner are steps of a script or a build.
constexpr std::int64_t kShortLifeNs = 10 * kNsPerSecond;

/// Those that start main processes: systemd, and what starts containers.
bool is_manager(const ProcessRecord& process) {
  constexpr std::array<std::string_view, 5> kNames{"containerd-shim", "conmon", "runc", "crun", "lxc-start"};
  if (process.id.pid == 1 || *process.comm == "systemd") return true;
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) {
    return std::string_view(*process.comm).substr(0, name.size()) == name;
  });
}

/// Empty: none.
std::string_view place_of(const ProcessRecord& process) {
  if (!process.place) return {};
  if (!process.place->container.empty()) return split_container(process.place->container).shown();
  return process.place->unit;
}

bool is_outside(const ProcessRecord& parent, std::string_view place) {
  // The place of a parent that was never sampled is not known.
  if (!parent.place) return is_manager(parent);
  return place_of(parent) != place;
}

struct Candidate {
  std::string_view place;    ///< unit or container; empty: none
  ProcessId parent;          ///< without a place
  std::string_view program;  ///< its path
  std::int64_t started_ns = 0;
  std::int64_t ended_ns = std::numeric_limits<std::int64_t>::max();
  std::uint32_t process = 0;

  [[nodiscard]] auto key() const { return std::tie(place, parent, program); }
};

std::vector<Candidate> candidates_of(const SnapshotData& data, const Selection& selection) {
  std::vector<Candidate> candidates;
  ThreadFilter filter(data, selection);
  const ProcessParents parents(data);
  data.processes.for_each_place([&](std::uint32_t process, const ProcessRecord& record) {
    if (!record.in_use() || record.started_ns == ProcessRecord::kNoTime || !record.executable ||
        data.hides_program_of(record) || !data.shows(record) || !filter.wants_process(process)) {
      return;
    }
    const std::uint32_t known_parent = parents.parent_of(record);
    const ProcessRecord* parent = known_parent == ProcessParents::kNone ? nullptr : &data.processes[known_parent];
    Candidate candidate{{}, {}, *record.executable, record.started_ns};
    const std::string_view place = place_of(record);
    if (!place.empty() && parent != nullptr && is_outside(*parent, place)) {
      candidate.place = place;
    } else if (record.parent_start_ticks != 0 && (record.has_run || !record.has_waited)) {
      candidate.parent = {record.parent_pid, record.parent_start_ticks};
    } else {
      return;
    }
    if (record.ended_ns != ProcessRecord::kNoTime) candidate.ended_ns = record.ended_ns;
    candidate.process = process;
    candidates.push_back(candidate);
  });
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.key() != b.key() ? a.key() < b.key() : a.started_ns < b.started_ns;
  });
  return candidates;
}

bool is_restart(const Candidate& before, const Candidate& after) {
  const std::int64_t pause_ns = after.started_ns - before.ended_ns;
  if (before.ended_ns > after.started_ns + kSlackNs || pause_ns > kLongestPauseNs) return false;
  return !after.place.empty() || before.ended_ns - before.started_ns >= kShortLifeNs;
}

}  // namespace

std::vector<Restart> restarts(const Snapshot& snapshot, const Selection& selection, std::size_t most) {
  const SnapshotData& data = snapshot.data();
  const std::vector<Candidate> candidates = candidates_of(data, selection);
  std::vector<Restart> found;
  const Candidate* last = nullptr;  // of those with the same key so far, the one that ran longest
  for (const Candidate& candidate : candidates) {
    if (last != nullptr && last->key() != candidate.key()) last = nullptr;
    const std::int64_t started_ns = candidate.started_ns;
    if (last != nullptr && is_restart(*last, candidate) && selection.window.from.ns <= started_ns &&
        started_ns < selection.window.to.ns) {
      const std::string_view program = candidate.program.substr(candidate.program.rfind('/') + 1);
      found.push_back({std::string(candidate.place.empty() ? program : candidate.place),
                       data.info_of(data.processes[last->process]), data.info_of(data.processes[candidate.process])});
    }
    if (last == nullptr || candidate.ended_ns >= last->ended_ns) last = &candidate;
  }
  std::sort(found.begin(), found.end(), [](const Restart& a, const Restart& b) {
    return std::tie(a.after.started, a.after.id) < std::tie(b.after.started, b.after.id);
  });
  if (found.size() > most) found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(most));
  return found;
}

}  // namespace flamed::store
