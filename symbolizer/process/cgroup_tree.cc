// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/cgroup_tree.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/file.h"
#include "symbolizer/process/cgroup_path.h"
#include "symbolizer/process/proc_folder.h"

namespace flamed::symbolizer {
namespace {

/// Users may create cgroups: so many files and folders are looked at in a fraction of a second.
constexpr std::size_t kMostEntries = 1'000'000;

std::optional<ino_t> inode_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_ino;
}

/// The folder with this inode, so many levels below `root`.
std::optional<std::string> find_folder(const std::string& root, std::size_t level, ino_t inode) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::size_t entries = 0;
  fs::recursive_directory_iterator entry(root, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (++entries > kMostEntries) break;
    if (static_cast<std::size_t>(entry.depth()) + 1 < level) continue;
    entry.disable_recursion_pending();
    std::error_code gone;
    if (entry->is_directory(gone) && inode_of(entry->path()) == inode) return entry->path().string();
  }
  return std::nullopt;
}

}  // namespace

Result<CgroupTree> find_cgroup_tree(const std::string& proc, const std::string& mount) {
  // Process 1 is in no group of a container: the namespace's root is as deep as its path leads up.
  std::array<char, 8192> buffer;
  const CgroupLine first = parse_proc_cgroup(read_once(proc_path(proc, 1, "cgroup"), buffer));
  const std::size_t level = first.unified ? levels_above(first.path) : 0;
  if (level == 0) return CgroupTree{mount};
  const std::optional<ino_t> inode = inode_of(mount);
  if (!inode) return Error::from_errno(mount);
  const std::string hosts = proc_path(proc, 1, "root") + mount;
  if (!inode_of(hosts)) return Error::from_errno(hosts);
  const std::optional<std::string> own = find_folder(hosts, level, *inode);
  if (!own) return Error("the root of this cgroup namespace is not in " + hosts);
  return CgroupTree{hosts, own->substr(hosts.size())};
}

}  // namespace flamed::symbolizer
