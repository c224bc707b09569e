// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/module_opener.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "symbolizer/model/clean_name.h"
#include "symbolizer/process/executable_lines.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/proc_text.h"
#include "symbolizer/process/root_directory.h"

namespace flamed::symbolizer {
namespace {

#ifndef BTRFS_SUPER_MAGIC
constexpr long BTRFS_SUPER_MAGIC = 0x9123683E;
#endif

constexpr std::size_t kOwnMapsLimitBytes = std::size_t{4} << 20;

/// Two file systems have another device in stat(2) than in mappings, and overlayfs sometimes another inode.
enum class FileSystem : std::uint8_t { kOther, kBtrfs, kOverlay };

FileSystem file_system_of(const Fd& fd) {
  struct statfs system {};
  if (::fstatfs(fd.get(), &system) != 0) return FileSystem::kOther;
  const auto magic = static_cast<std::uint32_t>(system.f_type);
  if (magic == OVERLAYFS_SUPER_MAGIC) return FileSystem::kOverlay;
  return magic == static_cast<std::uint32_t>(BTRFS_SUPER_MAGIC) ? FileSystem::kBtrfs : FileSystem::kOther;
}

bool has_inode(const Fd& fd, std::uint64_t inode) {
  struct stat status {};
  return ::fstat(fd.get(), &status) == 0 && status.st_ino == inode;
}

/// By stat(2), which on other file systems agrees with mappings.
bool is_by_stat(const Fd& fd, const FileKey& key) {
  struct stat status {};
  return ::fstat(fd.get(), &status) == 0 && status.st_ino == key.inode && major(status.st_dev) == key.device_major &&
         minor(status.st_dev) == key.device_minor;
}

/// The key shown in a mapping of the file, by creating one. Empty if it can't be mapped.
std::optional<FileKey> key_in_mappings(const Fd& path_only) {
  const Result<Fd> file = reopen_regular(path_only, "it");
  if (!file) return std::nullopt;
  void* const place = ::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, file->get(), 0);
  if (place == MAP_FAILED) return std::nullopt;
  const Result<std::string> maps = read_file("/proc/self/maps", kOwnMapsLimitBytes);
  ::munmap(place, 1);
  if (!maps) return std::nullopt;
  const auto address = reinterpret_cast<std::uint64_t>(place);
  for (std::string_view rest = *maps; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::optional<MapsLine> line = parse_maps_line(rest.substr(0, end));
    if (line && line->start <= address && address < line->end) return line->file;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
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

bool same_device(const FileKey& a, const FileKey& b) {
  return a.device_major == b.device_major && a.device_minor == b.device_minor;
}

/// The file at a mapping's addresses can change between reading /proc/PID/maps, with `shown`, and opening: a program
/// may load libraries at the same addresses thousands of times a second.
bool is_requested(const Fd& fd, const OpenRequest& request, const FileKey& shown) {
  if (is_by_stat(fd, request.file)) return true;
  const FileSystem file_system = file_system_of(fd);
  if (file_system == FileSystem::kOther) return false;
  const std::optional<FileKey> key = key_in_mappings(fd);
  return key == request.file || (file_system == FileSystem::kOverlay && key == shown);
}

/// A current mapping of the file: the reported one may have been split or merged since, and its addresses may have
/// another file, or be another process's if the pid was reused. For a file on overlayfs, Linux 6.8 to 6.17 reports the
/// layer's device and inode (perf_event_mmap_event()), and /proc/PID/maps shows those of overlayfs itself
/// (show_map_vma()). There, if nothing better is found, the same path at the same addresses is accepted, unless both
/// have the same device and so the same kind of numbers.
std::optional<CurrentMapping> current_mapping(const OpenRequest& request, const std::string& proc) {
  const Result<std::string> maps = read_executable_lines(proc_path(proc, request.pid, "maps"));
  if (!maps) return std::nullopt;
  std::optional<CurrentMapping> same_place;
  for (const MapsLine& line : parse_executable_maps(*maps)) {
    const CurrentMapping mapping{line.start, line.end, line.file};
    if (line.file == request.file) return mapping;
    if (line.start == request.start && line.end == request.end && line.path == request.path && line.file.is_file() &&
        !same_device(line.file, request.file)) {
      same_place = mapping;
    }
  }
  return same_place;
}

/// Is the file that was found by a path the mapped one?
bool is_same_file(const Fd& fd, const FileKey& key) {
  if (is_by_stat(fd, key)) return true;
  if (!has_inode(fd, key.inode)) return false;
  const FileSystem file_system = file_system_of(fd);
  // On overlayfs the device may be the layer's, which can't be found out for the file.
  return file_system == FileSystem::kOverlay ||
         (file_system == FileSystem::kBtrfs && key_in_mappings(fd) == std::optional(key));
}

// Errors contain neither the process nor the folder: all users who map the file by that name can see them.

Result<Fd> open_mapping(const OpenRequest& request, const std::string& proc) {
  const std::optional<CurrentMapping> mapping = current_mapping(request, proc);
  if (!mapping) return Error("its process has ended or unmapped it");
  const std::string name = map_files_path(proc, request.pid, mapping->start, mapping->end);
  const Fd found(::open(name.c_str(), O_PATH | O_CLOEXEC));
  if (!found) return Error::from_errno("open its mapping");
  if (!is_requested(found, request, mapping->file)) return Error("another file has taken its place");
  return reopen_regular(found, "its mapping");
}

/// Opens `path` in the tree `root`, if it is the mapped file.
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
    // Root directories of ended processes say nothing about the file; the host's, tried last, does.
    last_error = std::move(found).error();
  }
  return Error(why + last_error->message());
}

}  // namespace flamed::symbolizer
