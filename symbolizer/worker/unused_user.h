// SPDX-License-Identifier: Apache-2.0
//
// A user for the ELF worker of a daemon that runs as root on a host without a user of flamed's own. Whoever shares the
// worker's user may set its limits, stop it and kill it; so it gets one that nobody else has.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace flamed::symbolizer {

/// Users whom neither Debian nor systemd gives to anything (https://systemd.io/UIDS-GIDS; those above are given to
/// services with DynamicUser=), and that a container has whose users are mapped to 16 bits.
inline constexpr uid_t kFirstUnusedUser = 60'706;
inline constexpr uid_t kUnusedUsers = 478;

struct UserSearch {
  std::function<bool(uid_t)> has_account;
  std::uint32_t begin_at = 0;  ///< how many to go by first, so that those who search at once find different ones
  std::string proc = "/proc";
};

/// One of them that has no account and no process, and that exists in this user namespace. Empty when there is none.
std::optional<uid_t> find_unused_user(const UserSearch& search);

/// Does the user exist by the lines of a uid_map, see user_namespaces(7)? Pure.
bool is_mapped(std::string_view uid_map, uid_t user);

}  // namespace flamed::symbolizer
