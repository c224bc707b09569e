// SPDX-License-Identifier: Apache-2.0
#include "store/query/query.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "store/index/stack_states.h"
#include "store/query/profile_builder.h"
#include "store/query/slot_selection.h"
#include "store/query/thread_filter.h"
#include "store/ring/snapshot_data.h"

namespace flamed::store {
namespace {

/// A minute in which no thread is known to have waited.
std::shared_ptr<const Slot> empty_waits_of(const Slot& slot) {
  Slot waits{slot.bounds, slot.sequence};
  waits.bounds.period_ns = kWaitUnitNs;
  waits.edition = kWaitsEdition;
  return std::make_shared<const Slot>(std::move(waits));
}

bool has_samples(const SnapshotData& data, const Selection& selection, QueryBudget& budget) {
  SlotSelection slots(data, selection, budget);
  StackStates states(data);
  bool found = false;
  const auto look = [&](std::uint32_t /*thread*/, const ThreadStacks& stacks) {
    if (found) return;
    stacks.for_each([&](StackRef ref, std::uint64_t) { found = found || states.has(ref, selection.side); });
  };
  // A selection with samples most likely has recent ones.
  for (std::size_t slot = slots.size(); slot-- > 0 && !found;) {
    if (!slots.for_each_thread_of(slot, look)) break;
  }
  return found;
}

}  // namespace

Snapshot seen_by(const Snapshot& snapshot, std::uint32_t user) {
  auto data = std::make_shared<SnapshotData>(snapshot.data());
  data->only_user = user;
  return Snapshot(std::move(data));
}

Snapshot measured(const Snapshot& snapshot, Measure measure, bool hides_idle) {
  if (measure == Measure::kCpu) return snapshot;
  const SnapshotData& all = snapshot.data();
  auto data = std::make_shared<SnapshotData>(all);
  data->measure = measure;
  data->hides_idle = hides_idle;
  auto sealed = std::make_shared<std::vector<SealedSlot>>();
  const bool with_cpu = measure == Measure::kWall;
  for (const SealedSlot& slot : *all.sealed) {
    // Both or none, so that both are known of the same time.
    const bool is_kept = slot.wait_log != nullptr && (slot.log != nullptr || !with_cpu);
    if (with_cpu) sealed->push_back({slot.slot, is_kept ? slot.log : nullptr, nullptr});
    sealed->push_back({slot.slot->waits != nullptr ? slot.slot->waits : empty_waits_of(*slot.slot), nullptr,
                       is_kept ? slot.wait_log : nullptr});
  }
  data->sealed = std::move(sealed);
  data->open.clear();
  for (const OpenSlot::View& slot : all.open) {
    const bool is_kept = slot.wait_log && (slot.log.whole() || !with_cpu);
    if (with_cpu) {
      data->open.push_back(slot);
      data->open.back().wait_log.reset();
      if (!is_kept) data->open.back().log = OpenSampleLog::View::discarded();
    }
    OpenSlot::View waits = slot.waits != nullptr ? *slot.waits : OpenSlot::View{slot.bounds, slot.sequence};
    waits.bounds.period_ns = kWaitUnitNs;
    waits.log = OpenSampleLog::View::discarded();
    waits.wait_log = is_kept ? slot.wait_log : std::nullopt;
    data->open.push_back(std::move(waits));
  }
  data->pending = nullptr;
  if (all.on_disk_until) {
    data->warnings.push_back("Waiting time is not kept on disk: that of minutes up to " + to_text(*all.on_disk_until) +
                             " is missing.");
  }
  return Snapshot(std::move(data));
}

Snapshot with_warnings(const Snapshot& snapshot, std::span<const std::string> warnings) {
  auto data = std::make_shared<SnapshotData>(snapshot.data());
  data->warnings.insert(data->warnings.end(), warnings.begin(), warnings.end());
  return Snapshot(std::move(data));
}

Snapshot with_idle(const Snapshot& snapshot) {
  if (!snapshot.data().hides_idle) return snapshot;
  auto data = std::make_shared<SnapshotData>(snapshot.data());
  data->hides_idle = false;
  return Snapshot(std::move(data));
}

bool knows_waits(const Snapshot& snapshot) {
  return snapshot.data().waits_seen.all.ns != std::numeric_limits<std::int64_t>::min();
}

std::optional<std::uint32_t> only_user(const Snapshot& snapshot) { return snapshot.data().only_user; }

std::vector<Frame> frames_of(const Snapshot& snapshot, std::span<const ModuleId> modules) {
  std::vector<Frame> frames;
  snapshot.data().tree.frames.for_each_place([&](std::uint32_t, const PackedFrame& frame) {
    if (std::binary_search(modules.begin(), modules.end(), frame.module)) frames.push_back(without_mark(frame));
  });
  std::sort(frames.begin(), frames.end());
  frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
  return frames;
}

bool knows(const Snapshot& snapshot, const ProcessSelector& process) {
  bool known = false;
  snapshot.data().processes.for_each_place([&](std::uint32_t, const ProcessRecord& record) {
    known = known || (record.in_use() && matches(process, record.id) && snapshot.data().shows(record));
  });
  return known;
}

std::vector<ProcessInfo> selected_processes(const Snapshot& snapshot, const Selection& selection, std::size_t most) {
  std::vector<ProcessInfo> selected;
  ThreadFilter filter(snapshot.data(), selection);
  snapshot.data().processes.for_each_place([&](std::uint32_t process, const ProcessRecord& record) {
    if (selected.size() < most && record.in_use() && filter.wants_process(process)) {
      selected.push_back(snapshot.data().info_of(record));
    }
  });
  return selected;
}

KeptCpu kept_cpu(const Snapshot& snapshot, const WallWindow& window) {
  const SnapshotData& data = snapshot.data();
  KeptCpu kept{0, window};
  if (!data.on_disk_until || *data.on_disk_until <= window.from) return kept;
  double ns = 0;
  std::optional<WallTime> memory_from;
  const auto begin_memory = [&](const SlotBounds& bounds) {
    memory_from = WallTime{std::max(bounds.start, data.since).ns + bounds.wall_offset_ns};
  };
  for (const SealedSlot& sealed : *data.sealed) {
    const Slot& slot = *sealed.slot;
    const WallTime from = slot.bounds.wall_start(), to = slot.bounds.wall_end();
    if (*data.on_disk_until < to) {
      begin_memory(slot.bounds);
      break;
    }
    const std::int64_t overlap_ns = std::min(to, window.to).ns - std::max(from, window.from).ns;
    if (overlap_ns <= 0) continue;
    if (!slot.cpu_ns_accounted) kept.ns.reset();
    ns += static_cast<double>(slot.cpu_ns_accounted.value_or(0)) * static_cast<double>(overlap_ns) /
          static_cast<double>(to.ns - from.ns);
  }
  if (!memory_from && !data.open.empty()) begin_memory(data.open.front().bounds);
  kept.rest.from = std::max({window.from, *data.on_disk_until, memory_from.value_or(window.to)});
  if (kept.ns) kept.ns = static_cast<std::uint64_t>(std::llround(ns));
  return kept;
}

std::optional<bool> matches_ever(const Snapshot& snapshot, Selection selection, ProfileOptions options,
                                 FrameNamer& namer, QueryBudget& budget) {
  const auto retained = retained_window(snapshot);
  if (!retained) return std::nullopt;
  selection.window = {{0}, {retained->to.ns + kNsPerMinute}};
  selection.part.reset();
  if (!has_samples(snapshot.data(), selection, budget)) {
    return budget.exhausted() ? std::nullopt : std::optional(false);
  }
  if (!options.focus && !options.ignore && options.root.empty()) return true;
  options.min_percent = 0;
  options.max_nodes = 1;
  const Result<Profile> profile = build_profile(snapshot, selection, options, namer, budget);
  return profile ? std::optional(profile->nodes.front().total_samples != 0) : std::nullopt;
}

Result<Profile> build_profile(const Snapshot& snapshot, const Selection& selection, const ProfileOptions& options,
                              FrameNamer& namer, QueryBudget& budget) {
  return ProfileBuilder(snapshot.data(), options, namer, budget).build(selection);
}

Result<ProfileDiff> build_diff(const Snapshot& snapshot, const Selection& before, const Selection& after,
                               const ProfileOptions& options, const DiffOptions& diff_options, FrameNamer& namer,
                               QueryBudget& budget) {
  return ProfileBuilder(snapshot.data(), options, namer, budget).build_diff(before, after, diff_options);
}

Profile build_profile(const Snapshot& snapshot, const Selection& selection, FrameNamer& namer) {
  const ProfileOptions plain;
  QueryBudget unlimited;
  return build_profile(snapshot, selection, plain, namer, unlimited).value();
}

std::vector<ProcessUsage> process_usage(const Snapshot& snapshot, const WallWindow& window) {
  QueryBudget unlimited;
  return process_usage(snapshot, Selection{window}, unlimited).value().rows;
}

}  // namespace flamed::store
