// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/wait_intake.h"

#include <cstring>
#include <optional>
#include <string_view>

#include "daemon/waits/lock_holder.h"

namespace flamed::daemon {
namespace {

/// Waiting threads of a machine are in some hundred kernel functions. Modules and BPF programs come and go.
constexpr std::size_t kMostPlaces = 16'384;
/// A thread leaves a record in each epoch, with a round of visits to spare.
constexpr std::int64_t kGoneNs = std::int64_t{3} << FLAMED_EPOCH_SHIFT;
constexpr std::int64_t kBetweenSweepsNs = kNsPerMinute;

}  // namespace

store::WaitReason WaitIntake::reason_of(const VisitRecord& visit) {
  if (visit.wait->state == FLAMED_WAITS_FOR_CPU) return store::WaitReason::kRunQueue;
  if (visit.wait->state == FLAMED_STOPPED) return store::WaitReason::kOther;
  if (place_at_.size() > kMostPlaces) place_at_.clear();
  places_.clear();
  for (const std::uint64_t address : visit.sample.kernel) {
    const auto [place, is_new] = place_at_.try_emplace(address);
    if (is_new) place->second = store::wait_place_of(name_of_(address));
    places_.push_back(place->second);
  }
  const store::WaitReason reason = store::wait_reason_of(places_);
  return reason == store::WaitReason::kLock && !is_lock(*visit.wait) ? store::WaitReason::kCondition : reason;
}

Frame WaitIntake::holder_of(const VisitRecord& visit) {
  const flamed_wait& wait = *visit.wait;
  const std::string_view name(wait.holder_comm, ::strnlen(wait.holder_comm, sizeof(wait.holder_comm)));
  const auto number = names_.enter(symbolizer::SymbolKind::kUnknown, name, "", visit.sample.header->owner);
  return store::holder_frame(number.value_or(symbolizer::RuntimeFunctions::kNoRoom), wait.holder);
}

void WaitIntake::append_reason(const VisitRecord& visit, std::vector<Frame>& stack) {
  const store::WaitReason reason = reason_of(visit);
  if (reason == store::WaitReason::kLock && visit.wait->holder != 0) stack.push_back(holder_of(visit));
  stack.push_back(store::wait_frame(reason));
}

void WaitIntake::visited(const store::StackSample& found, const flamed_wait& wait) {
  const std::optional<WaitTimes::Times> times =
      times_.visited(static_cast<std::uint32_t>(found.tid), found.time, wait, found.owner);
  store::WaitSample sample;
  sample.sample = found;
  sample.has_user_stack = wait.stack == FLAMED_STACK_READ;
  if (times) {
    sample.is_known = times->is_known;
    sample.waited_ns = times->now_ns;
    sample.queued_ns = times->queued_ns;
    sample.disk_ns = times->disk_ns;
    sample.last_seen = times->seen;
  }
  store_.add_wait(sample);
}

void WaitIntake::ended(std::int32_t tid, MonotonicTime time) {
  times_.ended(static_cast<std::uint32_t>(tid));
  store_.end_wait(tid, time);
}

void WaitIntake::seen(MonotonicTime time, const store::LateOwners& late) {
  const std::size_t threads = times_.threads();
  const std::size_t with_disk = times_.threads_with_disk();
  threads_.store(threads, std::memory_order_relaxed);
  threads_with_disk_.store(with_disk, std::memory_order_relaxed);
  store_.set_waits_seen(time,
                        with_disk == 0         ? store::DiskAccount::kOfNone
                        : with_disk == threads ? store::DiskAccount::kOfAll
                                               : store::DiskAccount::kOfSome,
                        late);
  if (time.ns - swept_.ns < kBetweenSweepsNs) return;
  swept_ = time;
  const store::WaitsSeen seen{time, late};
  const auto gone_before = [&seen](std::uint32_t owner) { return MonotonicTime{seen.of(owner).ns - kGoneNs}; };
  for (const std::uint32_t tid : times_.forget_before(gone_before)) {
    store_.end_wait(static_cast<std::int32_t>(tid), time);
  }
}

}  // namespace flamed::daemon
