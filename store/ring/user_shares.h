// SPDX-License-Identifier: Apache-2.0
//
// UserShares: the memory of each user's stacks in the store, and which users have more than a share while others need
// room. Writer only.
//
// A share is the largest common bound for which all users fit: users who need little have what they need, the others
// divide the rest, and a lone user may have everything. Data that several users have in common counts for none of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "store/model/process_info.h"

namespace flamed::store {

/// A user in one byte, as long as the user has stored data.
using UserTag = std::uint8_t;
inline constexpr UserTag kUnused = 0;     ///< no user yet
inline constexpr UserTag kSeveral = 255;  ///< several users, or one without a tag
inline constexpr std::size_t kUserTags = 256;

/// "user 1000", or a text for samples without a single user.
std::string text_of_user(std::uint32_t user);

/// What a user lost because of the share.
struct GivenUp {
  std::uint32_t user = kNoUser;
  WallTime from;  ///< start of the minutes that lost stacks
  WallTime until;
  std::optional<WallTime> dropped_until{};  ///< the samples of minutes up to here were dropped
};

class UserShares {
 public:
  struct User {
    std::uint32_t user = kNoUser;
    bool is_known = false;
    std::size_t open_entries = 0;       ///< pairs of thread and stack in open slots
    std::size_t stack_bytes = 0;        ///< in histograms of sealed slots
    std::size_t thin_bytes = 0;         ///< likewise, of slots whose stacks were dropped
    std::uint32_t thinned_through = 0;  ///< sealed slots up to this one have no stacks of the user
    std::uint32_t dropped_through = 0;  ///< and these have no samples
    std::optional<GivenUp> given_up{};
    MonotonicTime lost_at;  ///< when given_up changed last
  };
  /// One resource: each user's part, and the total.
  using Held = std::array<std::size_t, kUserTags>;
  struct Resource {
    Held held{};
    std::size_t room = 0;  ///< for all users
  };

  [[nodiscard]] UserTag tag_of(std::uint32_t user);
  /// The same, but kSeveral if the user has no tag.
  [[nodiscard]] UserTag find(std::uint32_t user) const {
    const auto found = tags_.find(user);
    return found == tags_.end() ? kSeveral : found->second;
  }
  [[nodiscard]] User& operator[](UserTag tag) { return users_[tag]; }
  [[nodiscard]] const User& operator[](UserTag tag) const { return users_[tag]; }

  /// Computes which users have more than a share of a resource; the largest excess first.
  void judge(std::span<const Resource> resources);
  void acquit() { over_.clear(); }
  [[nodiscard]] const std::vector<UserTag>& over() const { return over_; }
  [[nodiscard]] bool is_over(std::uint32_t user) const {
    return !over_.empty() &&
           std::any_of(over_.begin(), over_.end(), [&](UserTag tag) { return users_[tag].user == user; });
  }

  /// Records that the user lost data of the minute [from, until).
  void note_given_up(UserTag tag, WallTime from, WallTime until, MonotonicTime now);
  [[nodiscard]] std::vector<GivenUp> given_up() const;
  /// Users who lost something since then.
  [[nodiscard]] std::vector<std::uint32_t> losers_since(MonotonicTime time) const;

  /// Forgets users without stored data. `nodes` are the call-tree's by user; `oldest` is the oldest stored slot, which
  /// begins at `start`.
  void forget_unused(const Held& nodes, std::uint32_t oldest, WallTime start);

 private:
  std::array<User, kUserTags> users_{};
  std::unordered_map<std::uint32_t, UserTag> tags_;
  std::vector<UserTag> over_;
};

}  // namespace flamed::store
