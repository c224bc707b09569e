// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/unused_user.h"

#include <pwd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <sstream>

#include "base/file.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/process_status.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kStatusLimitBytes = 16'384;

std::set<uid_t> users_of_processes(const std::string& proc) {
  std::set<uid_t> users;
  for (const std::int32_t pid : running_pids(proc)) {
    const Result<std::string> text = read_file(proc_path(proc, pid, "status"), kStatusLimitBytes);
    const std::optional<ProcessStatus> status = text ? parse_process_status(*text) : std::nullopt;
    if (status) users.insert({status->uid.real, status->uid.effective, status->uid.saved, status->uid.file_system});
  }
  return users;
}

}  // namespace

bool is_mapped(std::string_view uid_map, uid_t user) {
  std::istringstream lines{std::string(uid_map)};
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  while (lines >> inside >> outside >> count) {
    if (user >= inside && user - inside < count) return true;
  }
  return false;
}

std::optional<uid_t> find_unused_user(const UserSearch& search) {
  // Kernels without user namespaces have no such file, and all uids exist.
  const Result<std::string> map = read_file(search.proc + "/self/uid_map", kStatusLimitBytes);
  const std::set<uid_t> used = users_of_processes(search.proc);
  for (uid_t i = 0; i < kUnusedUsers; ++i) {
    const uid_t user = kFirstUnusedUser + (search.begin_at + i) % kUnusedUsers;
    if (used.contains(user) || (map && !is_mapped(*map, user)) || search.has_account(user)) continue;
    return user;
  }
  return std::nullopt;
}

std::optional<uid_t> find_unused_user_of_host(std::uint32_t begin_at) {
  const auto has_account = [](uid_t user) {
    passwd entry{};
    passwd* found = nullptr;
    std::array<char, 4096> text{};
    return ::getpwuid_r(user, &entry, text.data(), text.size(), &found) != 0 || found != nullptr;
  };
  return find_unused_user({.has_account = has_account, .begin_at = begin_at});
}

}  // namespace flamed::symbolizer
