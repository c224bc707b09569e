// SPDX-License-Identifier: Apache-2.0
#include "api/access/group_members.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

namespace flamed::api {
namespace {

/// An entry has all members of a group.
constexpr std::size_t kFirstBufferBytes = 4096;
constexpr std::size_t kLargestBufferBytes = 4U << 20;
constexpr int kFirstGroups = 64;
constexpr int kMostGroups = 65'536;  // NGROUPS_MAX

/// Calls a function like getpwuid_r(3) with increasing buffers. Empty: no such entry, or the database failed.
template <typename Entry, typename Call>
std::optional<Entry> get_entry(std::vector<char>& buffer, Call&& call) {
  for (buffer.resize(kFirstBufferBytes); buffer.size() <= kLargestBufferBytes; buffer.resize(2 * buffer.size())) {
    Entry entry{};
    Entry* found = nullptr;
    const int failed = call(&entry, buffer.data(), buffer.size(), &found);
    if (failed == ERANGE) continue;
    if (failed != 0 || found == nullptr) return std::nullopt;
    return entry;
  }
  return std::nullopt;
}

}  // namespace

std::vector<gid_t> groups_of_user(uid_t user) {
  std::vector<char> user_buffer;
  const auto account = get_entry<passwd>(user_buffer, [&](auto* entry, char* buffer, std::size_t size, auto** found) {
    return ::getpwuid_r(user, entry, buffer, size, found);
  });
  if (!account) return {};
  for (int room = kFirstGroups; room <= kMostGroups; room *= 4) {
    std::vector<gid_t> groups(static_cast<std::size_t>(room));
    int count = room;
    if (::getgrouplist(account->pw_name, account->pw_gid, groups.data(), &count) < 0) continue;
    groups.resize(static_cast<std::size_t>(std::clamp(count, 0, room)));
    return groups;
  }
  return {};
}

bool is_in_group(uid_t user, const std::string& group) {
  std::vector<char> group_buffer;
  const auto wanted =
      get_entry<struct group>(group_buffer, [&](auto* entry, char* buffer, std::size_t size, auto** found) {
        return ::getgrnam_r(group.c_str(), entry, buffer, size, found);
      });
  if (!wanted) return false;
  const std::vector<gid_t> groups = groups_of_user(user);
  return std::find(groups.begin(), groups.end(), wanted->gr_gid) != groups.end();
}

std::optional<uid_t> find_user_of_host(const std::string& name) {
  std::vector<char> account_buffer;
  const auto account =
      get_entry<passwd>(account_buffer, [&](auto* entry, char* buffer, std::size_t size, auto** found) {
        return ::getpwnam_r(name.c_str(), entry, buffer, size, found);
      });
  return account ? std::optional(account->pw_uid) : std::nullopt;
}

bool GroupMembers::has(uid_t user) {
  const MonotonicTime now = clock_.monotonic();
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(user);
    if (found != known_.end() && now.ns - found->second.since.ns < kLifeNs) return found->second.is_member;
  }
  const bool is_member = look_up_(user);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostUsers) known_.clear();
  known_[user] = {is_member, now};
  return is_member;
}

}  // namespace flamed::api
