// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/root_directory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>
#include <vector>

#include "symbolizer/model/clean_name.h"
#include "symbolizer/process/proc_folder.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint32_t kConfigfsMagic = 0x62656570;  // not in any uapi header
/// File systems of the kernel: opening or reading one of their files may have effects.
constexpr std::array<std::uint32_t, 16> kKernelsOwn{
    PROC_SUPER_MAGIC,    SYSFS_MAGIC,        TRACEFS_MAGIC,  DEBUGFS_MAGIC,  SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC,
    CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,       PSTOREFS_MAGIC, EFIVARFS_MAGIC, SELINUX_MAGIC,    SMACK_MAGIC,
    BINFMTFS_MAGIC,      DEVPTS_SUPER_MAGIC, NSFS_MAGIC,     kConfigfsMagic};

constexpr std::size_t kMostFolders = 64;
constexpr int kMostLinks = 40;  ///< the kernel's own limit

Status check_not_kernels(const Fd& fd, const std::string& name) {
  struct statfs system {};
  // The kernel's own file systems always answer; a FUSE may not.
  if (::fstatfs(fd.get(), &system) != 0) return {};
  const auto magic = static_cast<std::uint32_t>(system.f_type);
  if (std::find(kKernelsOwn.begin(), kKernelsOwn.end(), magic) == kKernelsOwn.end()) return {};
  return Error(name + " is not on a disk but shown by the kernel", EACCES);
}

std::string own_link(const Fd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); }

bool has_access_control_list(const Fd& fd) {
  if (::getxattr(own_link(fd).c_str(), "system.posix_acl_access", nullptr, 0) >= 0) return true;
  return errno != ENODATA && errno != EOPNOTSUPP;
}

/// `bit`: S_IROTH or S_IXOTH.
bool may(const Fd& fd, const struct stat& status, const RootDirectory::Reader& reader, mode_t bit) {
  constexpr unsigned kGroup = 3;
  constexpr unsigned kOwner = 6;
  if (status.st_uid == reader.user && reader.own_device && status.st_dev == *reader.own_device) {
    return (status.st_mode & (bit << kOwner)) != 0;
  }
  // If he is in the group, only its bits apply to him.
  return (status.st_mode & bit) != 0 && (status.st_mode & (bit << kGroup)) != 0 && !has_access_control_list(fd);
}

Result<std::string> target_of(const Fd& link, const std::string& name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
  if (size < 0) return Error::from_errno("read the link " + name);
  return std::string(target.data(), static_cast<std::size_t>(size));
}

/// Takes the first part off a path: "usr" of "/usr/lib". Empty at its end.
std::string take_part(std::string& path) {
  const std::size_t begin = std::min(path.find_first_not_of('/'), path.size());
  const std::size_t end = std::min(path.find('/', begin), path.size());
  std::string part = path.substr(begin, end - begin);
  path.erase(0, end);
  return part;
}

}  // namespace

Result<Fd> reopen_regular(const Fd& path_only, const std::string& name) {
  struct stat status {};
  if (::fstat(path_only.get(), &status) != 0) return Error::from_errno("stat " + name);
  if (!S_ISREG(status.st_mode)) return Error(name + " is not a regular file");
  if (Status usable = check_not_kernels(path_only, name); !usable) return usable.error();
  Fd file(::open(own_link(path_only).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return Error::from_errno("open " + name);
  return file;
}

Result<RootDirectory> RootDirectory::open(const std::string& path) {
  Fd top(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top) return Error::from_errno("open " + path);
  return RootDirectory(std::move(top));
}

Result<RootDirectory> RootDirectory::of_process(const std::string& proc, std::int32_t pid) {
  return open(proc_path(proc, pid, "root"));
}

Result<Fd> RootDirectory::find(const std::string& path, LastLink last) const {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | (last == LastLink::kItself ? O_NOFOLLOW : 0);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  Fd found(static_cast<int>(::syscall(SYS_openat2, top_.get(), path.c_str(), &how, sizeof(how))));
  if (!found) return Error::from_errno("open " + clean_name(path, 255));
  return found;
}

// Part by part, since the kernel only checks flamed's own rights. Each part is opened relative to the one before, so
// the checked file is the opened one, whatever is renamed or mounted meanwhile.
Result<Fd> RootDirectory::open_readable(const std::string& path, const Reader& reader) const {
  const std::string name = clean_name(path, 255);
  const auto refused = [&](const char* why) { return Error("open " + name + ": " + why, EACCES); };
  std::vector<Fd> way;  // folders below the top
  std::string rest = path;
  int links = 0;
  std::optional<std::uint64_t> judged;  // the last device that is not one of the kernel's own
  for (;;) {
    const std::string part = take_part(rest);
    if (part.empty()) return Error(name + " is not a regular file");
    if (part == ".") continue;
    if (part == "..") {
      if (!way.empty()) way.pop_back();
      continue;
    }
    const int here = way.empty() ? top_.get() : way.back().get();
    // O_DIRECTORY triggers automounts only for folders.
    Fd next(::openat(here, part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next && errno == ENOTDIR) next.reset(::openat(here, part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!next || ::fstat(next.get(), &status) != 0) return Error::from_errno("open " + name);
    if (judged != status.st_dev) {
      if (Status usable = check_not_kernels(next, name); !usable) return usable.error();
      judged = status.st_dev;
    }
    if (S_ISDIR(status.st_mode)) {
      if (!may(next, status, reader, S_IXOTH)) return refused("not everybody may search a folder on its path");
      if (way.size() == kMostFolders) return refused("too many folders on its path");
      way.push_back(std::move(next));
    } else if (S_ISLNK(status.st_mode)) {
      if (status.st_uid != 0 && status.st_uid != reader.user)
        return refused("a link on its path belongs to another user");
      if (++links > kMostLinks) return refused("too many links on its path");
      Result<std::string> target = target_of(next, name);
      if (!target) return target.error();
      if (target->starts_with('/')) way.clear();
      rest.insert(0, "/").insert(0, *target);
      if (rest.size() > std::size_t{2} * PATH_MAX) return refused("its links are too long");
    } else {
      if (rest.find_first_not_of('/') != std::string::npos) return Error::from_errno("open " + name, ENOTDIR);
      if (!may(next, status, reader, S_IROTH)) return refused("not everybody may read it");
      return reopen_regular(next, name);
    }
  }
}

}  // namespace flamed::symbolizer
