// SPDX-License-Identifier: Apache-2.0
#include "store/query.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "store/profile_builder.h"
#include "store/snapshot_data.h"
#include "store/thread_filter.h"

namespace flamed::store {

Snapshot seen_by(const Snapshot& snapshot, std::uint32_t user) {
  auto data = std::make_shared<SnapshotData>(snapshot.data());
  data->only_user = user;
  return Snapshot(std::move(data));
}

std::optional<std::uint32_t> only_user(const Snapshot& snapshot) { return snapshot.data().only_user; }

bool knows(const Snapshot& snapshot, const ProcessSelector& process) {
  bool known = false;
  snapshot.data().processes.for_each_place([&](std::uint32_t, const ProcessRecord& record) {
    known = known || (record.in_use() && matches(process, record.id) && snapshot.data().shows(record));
  });
  return known;
}

std::vector<ProcessInfo> processes_named(const Snapshot& snapshot, const std::vector<ProcessSelector>& selectors,
                                         std::size_t most) {
  std::vector<ProcessInfo> named;
  snapshot.data().processes.for_each_place([&](std::uint32_t, const ProcessRecord& record) {
    if (!record.in_use() || named.size() == most || !snapshot.data().shows(record)) return;
    const auto means = [&](const ProcessSelector& selector) { return matches(selector, record.id); };
    if (std::any_of(selectors.begin(), selectors.end(), means)) named.push_back(record.info());
  });
  return named;
}

Result<Profile> build_profile(const Snapshot& snapshot, const Selection& selection, const ProfileOptions& options,
                              FrameNamer& namer, QueryBudget& budget) {
  return ProfileBuilder(snapshot.data(), selection, options, budget).build(namer);
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
