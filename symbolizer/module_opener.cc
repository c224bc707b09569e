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

#include "symbolizer/clean_name.h"
#include "symbolizer/executable_lines.h"
#include "symbolizer/proc_folder.h"
#include "symbolizer/proc_text.h"
#include "symbolizer/root_directory.h"

namespace flamed::symbolizer {
namespace {

#ifndef BTRFS_SUPER_MAGIC
constexpr long BTRFS_SUPER_MAGIC = 0x9123683E;
#endif

/// Is it the file that was mapped? On file systems that show stat(2) another device than they show in mappings, the
/// inode alone has to do.
bool is_same_file(const Fd& fd, const FileKey& key) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || status.st_ino != key.inode) return false;
  if (major(status.st_dev) == key.device_major && minor(status.st_dev) == key.device_minor) return true;
  struct statfs system {};
  if (::fstatfs(fd.get(), &system) != 0) return false;
  const auto magic = static_cast<std::uint32_t>(system.f_type);
  return magic == OVERLAYFS_SUPER_MAGIC || magic == static_cast<std::uint32_t>(BTRFS_SUPER_MAGIC);
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
/// load libraries in each other's place thousands of times a second. On overlayfs, where mappings can show an inode
/// that stat(2) never does, the path has to do.
bool is_requested(const Fd& fd, const OpenRequest& request, const FileKey& shown) {
  if (is_same_file(fd, request.file) || is_same_file(fd, shown)) return true;
  struct statfs system {};
  if (::fstatfs(fd.get(), &system) != 0 || static_cast<std::uint32_t>(system.f_type) != OVERLAYFS_SUPER_MAGIC) {
    return false;
  }
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
  if (!is_requested(found, request, mapping->file)) return Error("another file has taken its place");
  return reopen_regular(found, "its mapping");
}

/// `path` in the tree `root`, when it is the file that was mapped.
Result<Fd> open_in_root(const std::string& root, const std::string& path, const FileKey& key) {
  const Result<RootDirectory> directory = RootDirectory::open(root);
  if (!directory) return directory.error();
  const Result<Fd> found = directory->find(path);
  const std::string name = clean_name(path.substr(path.find_last_of('/') + 1), NAME_MAX);
  if (!found) return Error::from_errno("open " + name, found.error().code());
  if (!is_same_file(*found, key)) return Error(name + " was deleted or replaced since it was mapped");
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
    Result<Fd> found = open_in_root(root, request.path, request.file);
    if (found) return found;
    // Roots of processes that are gone say nothing about the file; the host's root, tried last, does.
    last_error = std::move(found).error();
  }
  return Error(why + last_error->message());
}

}  // namespace flamed::symbolizer
