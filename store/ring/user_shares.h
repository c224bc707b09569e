// SPDX-License-Identifier: Apache-2.0
//
// UserShares: what each user's stacks take of the store, and who has more than a share while others need room. Writer
// only.
//
// A share is what a user could have at most if all were held to the same bound and the bound were as high as it can be:
// those who need little have what they need, the others divide what is left, and a lone user may have everything. What
// several users have in common is nobody's.
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

/// A user in one byte, for as long as something stored is theirs.
using UserTag = std::uint8_t;
inline constexpr UserTag kUnused = 0;     ///< nobody's yet
inline constexpr UserTag kSeveral = 255;  ///< of several users, or of one for whom there was no tag left
inline constexpr std::size_t kUserTags = 256;

/// "user 1000", or what there is of samples that are nobody's alone.
std::string text_of_user(std::uint32_t user);

/// What a user lost to keep to a share.
struct GivenUp {
  std::uint32_t user = kNoUser;
  WallTime from;  ///< of the minutes whose stacks went, or some of them
  WallTime until;
  std::optional<WallTime> dropped_until{};  ///< the samples themselves went, of the minutes up to here
};

class UserShares {
 public:
  struct User {
    std::uint32_t user = kNoUser;
    bool is_known = false;
    std::size_t open_entries = 0;       ///< pairs of thread and stack in open slots
    std::size_t stack_bytes = 0;        ///< in histograms of sealed slots
    std::size_t thin_bytes = 0;         ///< likewise, where the stacks were given up
    std::uint32_t thinned_through = 0;  ///< sealed slots up to this one have no stacks of the user any more
    std::uint32_t dropped_through = 0;  ///< and these have nothing
    std::optional<GivenUp> given_up{};
    MonotonicTime lost_at;  ///< when something was given up last; of given_up
  };
  /// What a user has of one resource, and what there is of it.
  using Held = std::array<std::size_t, kUserTags>;
  struct Resource {
    Held held{};
    std::size_t room = 0;  ///< for all users
  };

  [[nodiscard]] UserTag tag_of(std::uint32_t user);
  /// The same, but kSeveral where nothing is known of the user.
  [[nodiscard]] UserTag find(std::uint32_t user) const {
    const auto found = tags_.find(user);
    return found == tags_.end() ? kSeveral : found->second;
  }
  [[nodiscard]] User& operator[](UserTag tag) { return users_[tag]; }
  [[nodiscard]] const User& operator[](UserTag tag) const { return users_[tag]; }

  /// Finds out anew who has more than a share of one of the resources; the worst first.
  void judge(std::span<const Resource> resources);
  void acquit() { over_.clear(); }
  [[nodiscard]] const std::vector<UserTag>& over() const { return over_; }
  [[nodiscard]] bool is_over(std::uint32_t user) const {
    return !over_.empty() &&
           std::any_of(over_.begin(), over_.end(), [&](UserTag tag) { return users_[tag].user == user; });
  }

  /// Notes that the user lost something of the minute [from, until).
  void note_given_up(UserTag tag, WallTime from, WallTime until, MonotonicTime now);
  [[nodiscard]] std::vector<GivenUp> given_up() const;
  /// Users who lost something since then.
  [[nodiscard]] std::vector<std::uint32_t> losers_since(MonotonicTime time) const;

  /// Forgets users of whom nothing is held any more. `nodes` are the call-tree's by user; `oldest` is the oldest
  /// slot that is held, which begins at `start`.
  void forget_unused(const Held& nodes, std::uint32_t oldest, WallTime start);

 private:
  std::array<User, kUserTags> users_{};
  std::unordered_map<std::uint32_t, UserTag> tags_;
  std::vector<UserTag> over_;
};

}  // namespace flamed::store
