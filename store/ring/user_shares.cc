// SPDX-License-Identifier: Apache-2.0
#include "store/ring/user_shares.h"

#include <utility>

#include "base/fair_shares.h"

namespace flamed::store {

std::string text_of_user(std::uint32_t user) {
  return user == kNoUser ? "programs that are no single user's" : "user " + std::to_string(user);
}

UserTag UserShares::tag_of(std::uint32_t user) {
  if (const auto found = tags_.find(user); found != tags_.end()) return found->second;
  for (UserTag tag = kUnused + 1; tag < kSeveral; ++tag) {
    if (users_[tag].is_known) continue;
    users_[tag].user = user;
    users_[tag].is_known = true;
    tags_.emplace(user, tag);
    return tag;
  }
  return kSeveral;
}

void UserShares::judge(std::span<const Resource> resources) {
  over_.clear();
  std::array<double, kUserTags> excess{};
  for (const Resource& resource : resources) {
    std::vector<std::size_t> held;
    for (UserTag tag = kUnused + 1; tag < kSeveral; ++tag) {
      if (resource.held[tag] != 0) held.push_back(resource.held[tag]);
    }
    if (held.size() < 2) continue;
    const std::size_t share = fair_share(std::move(held), resource.room);
    for (UserTag tag = kUnused + 1; tag < kSeveral; ++tag) {
      if (resource.held[tag] <= share) continue;
      const auto above = static_cast<double>(resource.held[tag] - share);
      if (excess[tag] == 0) over_.push_back(tag);
      excess[tag] = std::max(excess[tag], above / static_cast<double>(std::max<std::size_t>(resource.room, 1)));
    }
  }
  std::stable_sort(over_.begin(), over_.end(), [&](UserTag a, UserTag b) { return excess[a] > excess[b]; });
}

void UserShares::note_given_up(UserTag tag, WallTime from, WallTime until, MonotonicTime now) {
  users_[tag].lost_at = now;
  std::optional<GivenUp>& known = users_[tag].given_up;
  if (!known) {
    known = GivenUp{users_[tag].user, from, until};
  } else {
    known->from = std::min(known->from, from);
    known->until = std::max(known->until, until);
  }
}

std::vector<GivenUp> UserShares::given_up() const {
  std::vector<GivenUp> all;
  for (const User& user : users_) {
    if (user.given_up) all.push_back(*user.given_up);
  }
  return all;
}

std::vector<std::uint32_t> UserShares::losers_since(MonotonicTime time) const {
  std::vector<std::uint32_t> losers;
  for (const User& user : users_) {
    if (user.given_up && user.lost_at >= time) losers.push_back(user.user);
  }
  return losers;
}

void UserShares::forget_unused(const Held& nodes, std::uint32_t oldest, WallTime start) {
  for (UserTag tag = kUnused + 1; tag < kSeveral; ++tag) {
    User& user = users_[tag];
    if (!user.is_known) continue;
    if (user.given_up && user.given_up->until <= start) user.given_up.reset();
    if (nodes[tag] != 0 || user.open_entries != 0 || user.stack_bytes != 0 || user.given_up) continue;
    if (user.thinned_through >= oldest) continue;
    tags_.erase(user.user);
    std::erase(over_, tag);
    user = User{};
  }
}

}  // namespace flamed::store
