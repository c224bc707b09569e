// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/direct_root_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/result.h"
#include "symbolizer/model/file_key.h"
#include "symbolizer/process/mount_info.h"
#include "symbolizer/process/root_directory.h"

namespace flamed::symbolizer {
namespace {

#ifndef BTRFS_SUPER_MAGIC
constexpr long BTRFS_SUPER_MAGIC = 0x9123683E;
#endif

/// By flamed's own mounts: an overlay that is not among them may be on any file system.
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
  // btrfs has devices that are not in the mounts, and everybody may mount a tmpfs.
  const auto magic = static_cast<std::uint32_t>(system.f_type);
  return magic == static_cast<std::uint32_t>(BTRFS_SUPER_MAGIC) || magic == TMPFS_MAGIC;
}

/// The uid that the kernel shows for unmapped owners (kernel.overflowuid), so different ones look the same.
constexpr uid_t kNobody = 65534;

/// Only the owner or root can have written its content.
bool counts(const struct stat& status, const FileOwner& owner) {
  if (status.st_uid != 0 && (status.st_uid != owner.user || status.st_uid == kNobody)) return false;
  // Users have private groups, so an umask of 002 is common; for root's files the group counts like others.
  const mode_t others = status.st_uid == 0 ? S_IWGRP | S_IWOTH : S_IWOTH;
  return (status.st_mode & others) == 0;
}

bool is_foreign(const Fd& file, const struct stat& status, const FileOwner& owner) {
  if (status.st_dev == owner.device) return false;
  struct statfs system {};
  return ::fstatfs(file.get(), &system) != 0 || (system.f_flags & ST_NOSUID) != 0;
}

}  // namespace

FileOwner owner_of(int fd) {
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &status) != 0) return {};
  return {status.stx_uid, makedev(status.stx_dev_major, status.stx_dev_minor)};
}

std::vector<RootFile> DirectRootFiles::open(std::int32_t pid, std::span<const std::string> paths,
                                            const FileOwner& owner) {
  std::vector<RootFile> files(paths.size());
  const Result<RootDirectory> root =
      pid == kHost ? RootDirectory::open(options_.host_root) : RootDirectory::of_process(options_.proc, pid);
  if (!root) return files;
  RootDirectory::Reader reader{owner.user};
  if (pid == kHost || owner.user != 0) reader.own_device = owner.device;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Result<Fd> file = root->open_readable(paths[i], reader);
    struct stat status {};
    if (!file || ::fstat(file->get(), &status) != 0 || !counts(status, owner)) continue;
    files[i].is_local = is_local(*file);
    files[i].is_foreign = is_foreign(*file, status, owner);
    files[i].file = std::move(file).value();
  }
  return files;
}

}  // namespace flamed::symbolizer
