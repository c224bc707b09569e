// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/debian_packages.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/clock.h"
#include "base/file.h"
#include "base/keyed_hash.h"

namespace flamed::symbolizer {
namespace {

/// The largest list of Debian 12 has 3 MB.
constexpr std::size_t kMaxListBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxFiles = 4'000'000;

bool may_have_code(std::string_view path) {
  return !path.starts_with("/usr/share/") && !path.starts_with("/usr/include/");
}

}  // namespace

std::string DebianPackages::owner_of(std::string_view path) {
  struct stat folder {};
  if (::stat(folder_.c_str(), &folder) != 0) return {};
  const std::int64_t changed_ns = folder.st_mtim.tv_sec * kNsPerSecond + folder.st_mtim.tv_nsec;
  std::lock_guard lock(mutex_);
  if (changed_ns != changed_ns_) {
    changed_ns_ = changed_ns;
    read_lists_locked();
  }
  std::string found = find_locked(path);
  // Lists may still have the names from before /lib and /bin became links into /usr.
  constexpr std::string_view kUsr = "/usr";
  if (found.empty() && path.starts_with("/usr/")) found = find_locked(path.substr(kUsr.size()));
  return found;
}

std::string DebianPackages::find_locked(std::string_view path) const {
  const std::uint64_t wanted = keyed_hash(path);
  const auto found = std::lower_bound(files_.begin(), files_.end(), wanted,
                                      [](const File& file, std::uint64_t hash) { return file.path < hash; });
  return found != files_.end() && found->path == wanted ? packages_[found->package] : std::string();
}

void DebianPackages::read_lists_locked() {
  files_.clear();
  packages_.clear();
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder_, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() != ".list") continue;
    const Result<std::string> list = read_file(entry->path().string(), kMaxListBytes);
    if (!list) continue;
    const std::string package = entry->path().stem().string();  // "libssl3:amd64"
    packages_.push_back(package.substr(0, package.find(':')));
    read_list_locked(*list);
  }
  files_.shrink_to_fit();
  std::sort(files_.begin(), files_.end(), [](const File& a, const File& b) { return a.path < b.path; });
}

/// A path on each line, of folders as well.
void DebianPackages::read_list_locked(std::string_view list) {
  const auto package = static_cast<std::uint32_t>(packages_.size() - 1);
  while (!list.empty() && files_.size() < kMaxFiles) {
    const std::string_view path = list.substr(0, list.find('\n'));
    list.remove_prefix(std::min(path.size() + 1, list.size()));
    if (may_have_code(path)) files_.push_back({keyed_hash(path), package});
  }
}

}  // namespace flamed::symbolizer
