// SPDX-License-Identifier: Apache-2.0
//
// Finds a user for the ELF worker of a daemon that runs as root on a host without the user `flamed`. Processes of the
// same user may set the worker's limits, stop it and kill it; so it gets a user without other processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace flamed::symbolizer {

/// Uids that neither Debian nor systemd assigns (https://systemd.io/UIDS-GIDS; those above are for services with
/// DynamicUser=), and that exist in containers with 16 bits of mapped uids.
inline constexpr uid_t kFirstUnusedUser = 60'706;
inline constexpr uid_t kUnusedUsers = 478;

struct UserSearch {
  std::function<bool(uid_t)> has_account;
  std::uint32_t begin_at = 0;  ///< how many to skip first, so that simultaneous searches find different ones
  std::string proc = "/proc";
};

/// A uid without an account and without processes that exists in this user namespace. Empty if there is none.
std::optional<uid_t> find_unused_user(const UserSearch& search);

/// Likewise, on this host. `begin_at` as in UserSearch.
std::optional<uid_t> find_unused_user_of_host(std::uint32_t begin_at);

/// Is the user mapped in a uid_map, see user_namespaces(7)? Pure.
bool is_mapped(std::string_view uid_map, uid_t user);

}  // namespace flamed::symbolizer
