// SPDX-License-Identifier: Apache-2.0
//
// GroupMembers: who is in a group of the host, by its account databases, remembered for a few seconds. Any thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace flamed::api {

/// Whether it is the user's primary group or one of their others: the group's list of members or, where accounts come
/// from a directory, what that says (getgrouplist(3)). A user without an account, as of a container, is in no group.
/// May wait for the directory.
bool is_in_group(uid_t user, const std::string& group);

class GroupMembers {
 public:
  /// Who joins or leaves the group waits no longer than this.
  static constexpr std::int64_t kLifeNs = 5 * kNsPerSecond;

  using LookUp = std::function<bool(uid_t)>;
  /// `clock` must outlive it.
  GroupMembers(LookUp look_up, const Clock& clock) : look_up_(std::move(look_up)), clock_(clock) {}

  [[nodiscard]] bool has(uid_t user);

 private:
  /// A host's users who ask in the same seconds are fewer.
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
