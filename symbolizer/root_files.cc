// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/root_files.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/result.h"
#include "symbolizer/file_key.h"
#include "symbolizer/mount_info.h"
#include "symbolizer/root_directory.h"

namespace flamed::symbolizer {
namespace {

#ifndef BTRFS_SUPER_MAGIC
constexpr long BTRFS_SUPER_MAGIC = 0x9123683E;
#endif

/// By flamed's own mounts: an overlay that is none of them may lie above anything.
bool is_local(const Fd& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return false;
  const FileKey device{major(status.st_dev), minor(status.st_dev), 0};
  const Result<std::string> mounts = read_file("/proc/self/mountinfo", kMountInfoLimitBytes);
  const std::string_view type = mounts ? file_system_of(*mounts, device) : std::string_view();
  if (!type.empty()) return !may_hang(type);
  if (device.device_major != 0) return true;  // a disk
  struct statfs system {};
  if (::fstatfs(file.get(), &system) != 0) return false;
  // btrfs has devices that no mount shows, and everybody may mount a tmpfs of his own.
  const auto magic = static_cast<std::uint32_t>(system.f_type);
  return magic == static_cast<std::uint32_t>(BTRFS_SUPER_MAGIC) || magic == TMPFS_MAGIC;
}

}  // namespace

std::vector<RootFile> DirectRootFiles::open(std::int32_t pid, uid_t user, std::span<const std::string> paths) {
  std::vector<RootFile> files(paths.size());
  const Result<RootDirectory> root =
      pid == kHost ? RootDirectory::open(options_.host_root) : RootDirectory::of_process(options_.proc, pid);
  if (!root) return files;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Result<Fd> file = root->open_regular_of(user, paths[i]);
    if (!file) continue;
    files[i].is_local = is_local(*file);
    files[i].file = std::move(file).value();
  }
  return files;
}

}  // namespace flamed::symbolizer
