// SPDX-License-Identifier: Apache-2.0
//
// GroupMembers: the members of a group of the host, from its account databases, cached for a few seconds. Any thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"

namespace flamed::api {

/// The user's primary group and the supplementary ones, by getgrouplist(3); empty for a user without an account, such
/// as a container's. May wait for a directory that accounts come from.
std::vector<gid_t> groups_of_user(uid_t user);

/// Whether it is the user's primary group or a supplementary one: by the group's list of members or, if accounts come
/// from a directory, by getgrouplist(3). A user without an account, such as a container's, is in no group. May wait for
/// the directory.
bool is_in_group(uid_t user, const std::string& group);

/// The user with this name, from the same databases; empty: there is none. May wait likewise.
std::optional<uid_t> find_user_of_host(const std::string& name);

class GroupMembers {
 public:
  /// Joining or leaving the group takes effect after this time at most.
  static constexpr std::int64_t kLifeNs = 5 * kNsPerSecond;

  using LookUp = std::function<bool(uid_t)>;
  /// `clock` must outlive it.
  GroupMembers(LookUp look_up, const Clock& clock) : look_up_(std::move(look_up)), clock_(clock) {}

  [[nodiscard]] bool has(uid_t user);

 private:
  /// More than a host has users who ask in the same seconds.
  static constexpr std::size_t kMostUsers = 1024;

  struct Known {
    bool is_member = false;
    MonotonicTime since;
  };
  const LookUp look_up_;
  const Clock& clock_;
  std::mutex mutex_;  ///< not held while looking up
  std::unordered_map<uid_t, Known> known_;
};

}  // namespace flamed::api
