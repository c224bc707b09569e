// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/module_opener.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/file.h"
#include "symbolizer/clean_name.h"
#include "symbolizer/executable_lines.h"
#include "symbolizer/mount_info.h"
#include "symbolizer/proc_folder.h"
#include "symbolizer/proc_text.h"
#include "symbolizer/root_directory.h"

namespace flamed::symbolizer {
namespace {

#ifndef BTRFS_SUPER_MAGIC
constexpr long BTRFS_SUPER_MAGIC = 0x9123683E;
#endif

std::uint32_t magic_of(const Fd& fd) {
  struct statfs system {};
  return ::fstatfs(fd.get(), &system) == 0 ? static_cast<std::uint32_t>(system.f_type) : 0;
}

/// Does the file lie on the device that the mapping shows? Empty where that can't be had: before Linux 5.8, and of
/// mounts that neither the process nor flamed sees.
std::optional<bool> lies_on_device(const Fd& fd, const FileKey& key, const std::string& proc, std::int32_t pid) {
  struct statx status {};
  if (::statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &status) != 0) return std::nullopt;
  if ((status.stx_mask & STATX_MNT_ID) == 0) return std::nullopt;
  for (const std::string& path : {proc_path(proc, pid, "mountinfo"), proc + "/self/mountinfo"}) {
    const Result<std::string> mounts = read_file(path, kMountInfoLimitBytes);
    if (!mounts) continue;
    if (const std::optional<bool> found = is_mount_of(*mounts, status.stx_mnt_id, key)) return found;
  }
  return std::nullopt;
}

/// Is it the file that was mapped? Two kinds of file systems show stat(2) another device than they show in mappings. On
/// btrfs stat(2) has the subvolume's, and mappings that of the whole, which the mount has, too. On overlayfs the inode
/// alone has to do.
bool is_same_file(const Fd& fd, const FileKey& key, const std::string& proc, std::int32_t pid) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || status.st_ino != key.inode) return false;
  if (major(status.st_dev) == key.device_major && minor(status.st_dev) == key.device_minor) return true;
  const std::uint32_t magic = magic_of(fd);
  if (magic == OVERLAYFS_SUPER_MAGIC) return true;
  return magic == static_cast<std::uint32_t>(BTRFS_SUPER_MAGIC) && lies_on_device(fd, key, proc, pid).value_or(true);
}

std::string map_files_path(const std::string& proc, std::int32_t pid, std::uint64_t start, std::uint64_t end) {
  std::array<char, 48> range{};
  std::snprintf(range.data(), range.size(), "%llx-%llx", static_cast<unsigned long long>(start),
                static_cast<unsigned long long>(end));
  return proc_path(proc, pid, "map_files/") + range.data();
}

struct CurrentMapping {
  std::uint64_t start, end;
  FileKey file;
};

/// What stands at a mapping's addresses can change between the look at /proc/PID/maps and the opening: a program may
/// load libraries in each other's place thousands of times a second, and another file may be bound over the path of one
/// and mapped at its addresses. Only on overlayfs, where mappings can show an inode that stat(2) never does, the place
/// and the path have to do.
bool is_requested(const Fd& fd, const OpenRequest& request, const FileKey& shown, const std::string& proc) {
  if (is_same_file(fd, request.file, proc, request.pid)) return true;
  if (magic_of(fd) != OVERLAYFS_SUPER_MAGIC) return false;
  if (is_same_file(fd, shown, proc, request.pid)) return true;
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), path.data(), path.size());
  return size > 0 && without_deleted_mark({path.data(), static_cast<std::size_t>(size)}) == request.path;
}

/// A mapping of the file as it stands now: the one that was reported may have been split or merged since, and at its
/// addresses may stand another file, of another process if the pid was given away again.
/// On overlayfs some kernels tell of a mapping with another inode than /proc/PID/maps shows (perf_event_mmap_event()
/// and show_map_vma()): there the same path at the same addresses has to do.
std::optional<CurrentMapping> current_mapping(const OpenRequest& request, const std::string& proc) {
  const Result<std::string> maps = read_executable_lines(proc_path(proc, request.pid, "maps"));
  if (!maps) return std::nullopt;
  for (const MapsLine& line : parse_executable_maps(*maps)) {
    const bool same_place = line.start == request.start && line.end == request.end && line.path == request.path;
    if (line.file == request.file || (same_place && line.file.is_file()))
      return CurrentMapping{line.start, line.end, line.file};
  }
  return std::nullopt;
}

// Errors tell neither the process nor the folder: they are shown to everybody who has the file mapped by that name.

Result<Fd> open_mapping(const OpenRequest& request, const std::string& proc) {
  const std::optional<CurrentMapping> mapping = current_mapping(request, proc);
  if (!mapping) return Error("its process has ended or unmapped it");
  const std::string name = map_files_path(proc, request.pid, mapping->start, mapping->end);
  const Fd found(::open(name.c_str(), O_PATH | O_CLOEXEC));
  if (!found) return Error::from_errno("open its mapping");
  if (!is_requested(found, request, mapping->file, proc)) return Error("another file has taken its place");
  return reopen_regular(found, "its mapping");
}

/// The path in the tree `root`, when it is the file that was mapped.
Result<Fd> open_in_root(const std::string& root, const OpenRequest& request, const std::string& proc) {
  const std::string& path = request.path;
  const Result<RootDirectory> directory = RootDirectory::open(root);
  if (!directory) return directory.error();
  const Result<Fd> found = directory->find(path);
  const std::string name = clean_name(path.substr(path.find_last_of('/') + 1), NAME_MAX);
  if (!found) return Error::from_errno("open " + name, found.error().code());
  if (!is_same_file(*found, request.file, proc, request.pid)) {
    return Error(name + " was deleted or replaced since it was mapped");
  }
  return reopen_regular(*found, name);
}

}  // namespace

Result<Fd> open_module(const OpenRequest& request, const std::string& proc, ModuleSearch search) {
  std::string why;
  if (search != ModuleSearch::kPaths) {
    Result<Fd> mapped = open_mapping(request, proc);
    if (mapped || search == ModuleSearch::kMappings || !request.path.starts_with('/')) return mapped;
    why = mapped.error().message() + "; ";
  }
  std::optional<Error> last_error;
  for (const std::string& root :
       {proc_path(proc, request.pid, "root"), proc_path(proc, request.parent_pid, "root"), std::string("/")}) {
    Result<Fd> found = open_in_root(root, request, proc);
    if (found) return found;
    // Roots of processes that are gone say nothing about the file; the host's root, tried last, does.
    last_error = std::move(found).error();
  }
  return Error(why + last_error->message());
}

}  // namespace flamed::symbolizer
