// SPDX-License-Identifier: Apache-2.0
#include "daemon/waits/visit_shares.h"

#include <algorithm>

namespace flamed::daemon {
namespace {

/// Threads of which only the beginning is known.
constexpr std::size_t kMostUnknown = 1024;
constexpr std::size_t kMostKnown = FLAMED_MOST_LISTED - kMostUnknown;
/// With more, threads of further owners are in no list, and not left out of rounds over all.
constexpr std::size_t kMostLarge = 256;

}  // namespace

void VisitShares::begin_round(MonotonicTime now) {
  last_began_ = round_began_.ns == 0 ? now : round_began_;
  round_began_ = now;
}

bool VisitShares::end_round(std::uint32_t owner, const flamed_owner_share& share) {
  LargeOwner& large = large_.at(owner);
  large.threads = share.threads;
  if (share.passed_before == 0) large.began = round_began_;
  if (share.passed_over == 0) large.seen = large.began;
  if (share.passed_over + share.passed_before != 0 || share.threads > FLAMED_MANY_THREADS / 2) return true;
  large_.erase(owner);
  return false;
}

bool VisitShares::make_large(std::uint32_t owner) {
  if (large_.size() >= kMostLarge) return false;
  const auto found = owners_.find(owner);
  large_.try_emplace(owner, LargeOwner{found == owners_.end() ? 0 : found->second, last_began_, round_began_});
  if (found == owners_.end()) return true;
  std::erase_if(threads_, [&](const auto& thread) { return thread.second == owner; });
  owners_.erase(found);
  return true;
}

std::optional<std::uint32_t> VisitShares::visited(std::uint32_t tid, std::uint32_t owner) {
  if (large_.contains(owner)) {
    gone(tid);
    return std::nullopt;
  }
  const auto [thread, is_new] = threads_.try_emplace(tid, owner);
  if (!is_new) {
    if (thread->second == owner) return std::nullopt;
    forget_owner(thread->second);
    thread->second = owner;
  }
  ++owners_[owner];
  if (threads_.size() - unknown_ <= kMostKnown) return std::nullopt;
  const auto most = std::max_element(owners_.begin(), owners_.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::uint32_t largest = most->first;
  if (make_large(largest)) return largest;
  gone(tid);
  return std::nullopt;
}

void VisitShares::started(std::uint32_t tid) {
  if (unknown_ >= kMostUnknown) return;
  if (threads_.try_emplace(tid, std::nullopt).second) ++unknown_;
}

void VisitShares::gone(std::uint32_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  forget_owner(found->second);
  threads_.erase(found);
}

void VisitShares::forget_owner(std::optional<std::uint32_t> owner) {
  if (!owner) {
    --unknown_;
    return;
  }
  const auto found = owners_.find(*owner);
  if (--found->second == 0) owners_.erase(found);
}

std::vector<std::uint32_t> VisitShares::tids() const {
  std::vector<std::uint32_t> tids;
  tids.reserve(threads_.size());
  for (const auto& [tid, owner] : threads_) tids.push_back(tid);
  return tids;
}

double VisitShares::share_of_list() const {
  if (threads_.empty()) return 0;
  const std::size_t owners = std::max<std::size_t>(owners_.size(), 1);
  return static_cast<double>(owners) / static_cast<double>(owners + large_.size());
}

}  // namespace flamed::daemon
