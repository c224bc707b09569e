// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/root_directory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "symbolizer/model/clean_name.h"
#include "symbolizer/process/mount_info.h"
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

/// Without saying of what.
Error plain_error(int code) { return Error(std::generic_category().message(code), code); }

Result<std::string> target_of(const Fd& link) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
  if (size < 0) return Error::from_errno("read a link on its path");
  return std::string(target.data(), static_cast<std::size_t>(size));
}

/// The kernel's own rule for a user without capabilities. `bit`: S_IROTH or S_IXOTH.
bool lets(const RootDirectory::Member& member, const struct stat& status, mode_t bit) {
  const mode_t of_group = bit << 3U;
  const mode_t of_owner = bit << 6U;
  // In place of an owner that the kernel does not know here, who may be in any relation to the member.
  constexpr std::uint32_t kNobody = 65534;
  if (status.st_uid == kNobody || status.st_gid == kNobody) {
    const mode_t all = bit | of_group | of_owner;
    return (status.st_mode & all) == all;
  }
  if (status.st_uid == member.user) return (status.st_mode & of_owner) != 0;
  const auto& groups = member.groups;
  const bool is_member = std::find(groups.begin(), groups.end(), status.st_gid) != groups.end();
  return (status.st_mode & (is_member ? of_group : bit)) != 0;
}

/// Whether its file system always answers; asks only the kernel. `known` is a mount of which that is known.
Status check_local(const Fd& part, std::string_view mountinfo, std::optional<std::uint64_t>& known) {
  struct statx place {};
  if (::statx(part.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &place) != 0) return plain_error(errno);
  const bool has_mount = (place.stx_mask & STATX_MNT_ID) != 0;
  if (has_mount && known == place.stx_mnt_id) return {};
  std::string type(has_mount ? file_system_of_mount(mountinfo, place.stx_mnt_id) : std::string_view());
  if (type.empty()) {
    // The process sees no mount there if its root directory is a folder of one (chroot).
    const Result<std::string> own = read_file("/proc/self/mountinfo", kMountInfoLimitBytes);
    if (own) type = file_system_of(*own, {place.stx_dev_major, place.stx_dev_minor, 0});
  }
  if (type.empty()) return Error("its file system is not known", EACCES);
  if (may_hang(type)) return Error("it is not on a disk of this machine, but on " + clean_name(type, 32), EACCES);
  if (has_mount) known = place.stx_mnt_id;
  return {};
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

/// What a way to a file must be like.
struct RootDirectory::Rules {
  Links links = Links::kFollowed;
  std::optional<std::uint32_t> user = 0;  ///< only his links and root's are followed; none: everybody's
  /// ".." at the top stays there, as the kernel has it; false: is refused.
  bool may_climb = true;
  bool triggers_automounts = true;
  bool may_be_folder = false;  ///< what it leads to
  /// Of each part before its file system is asked anything; may be empty.
  std::function<Status(const Fd&)> approach{};
  /// Of each part; may be empty.
  std::function<Status(const Fd&, const struct stat&)> judge{};
};

// Part by part, since the kernel only checks flamed's own rights, and systemd's RestrictSUIDSGID= forbids openat2. Each
// part is opened relative to the one before, so the checked file is the opened one, whatever is renamed or mounted
// meanwhile.
Result<Fd> RootDirectory::walk(const std::string& path, const Rules& rules) const {
  const auto refused = [](const char* why) { return Error(why, EACCES); };
  std::vector<Fd> way;  // folders below the top
  std::string rest = path;
  int links = 0;
  for (;;) {
    const std::string part = take_part(rest);
    if (part.empty()) {
      if (!rules.may_be_folder || way.empty()) return Error("it is not a regular file", EISDIR);
      return std::move(way.back());
    }
    if (part == ".") continue;
    if (part == "..") {
      if (way.empty() && !rules.may_climb) return refused("its path leads out of the root directory");
      if (!way.empty()) way.pop_back();
      continue;
    }
    const int here = way.empty() ? top_.get() : way.back().get();
    Fd next;
    // O_DIRECTORY triggers automounts only for folders.
    if (rules.triggers_automounts) {
      next.reset(::openat(here, part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    }
    if (!next && (!rules.triggers_automounts || errno == ENOTDIR)) {
      next.reset(::openat(here, part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    }
    if (!next) return plain_error(errno);
    if (rules.approach) {
      if (Status usable = rules.approach(next); !usable) return usable.error();
    }
    struct stat status {};
    if (::fstat(next.get(), &status) != 0) return plain_error(errno);
    if (rules.judge) {
      if (Status usable = rules.judge(next, status); !usable) return usable.error();
    }
    const bool is_last = rest.find_first_not_of('/') == std::string::npos;
    if (S_ISDIR(status.st_mode)) {
      if (way.size() == kMostFolders) return refused("too many folders on its path");
      way.push_back(std::move(next));
    } else if (S_ISLNK(status.st_mode) && !(is_last && rules.links == Links::kNotTheLast)) {
      if (rules.links == Links::kRefused) return Error("its path has a symbolic link", ELOOP);
      if (rules.user && status.st_uid != 0 && status.st_uid != *rules.user) {
        return refused("a link on its path belongs to another user");
      }
      if (++links > kMostLinks) return refused("too many links on its path");
      Result<std::string> target = target_of(next);
      if (!target) return target.error();
      if (target->starts_with('/')) way.clear();
      rest.insert(0, "/").insert(0, *target);
      if (rest.size() > std::size_t{2} * PATH_MAX) return refused("its links are too long");
    } else {
      if (!is_last) return plain_error(ENOTDIR);
      return next;
    }
  }
}

Result<Fd> RootDirectory::find(const std::string& path, Links links) const {
  Rules rules;
  rules.links = links;
  rules.user.reset();
  rules.may_be_folder = true;
  Result<Fd> found = walk(path, rules);
  if (!found) return std::move(found).error().with_context("open " + clean_name(path, 255));
  return found;
}

Result<Fd> RootDirectory::open_readable(const std::string& path, const Reader& reader) const {
  const std::string name = clean_name(path, 255);
  std::optional<std::uint64_t> judged;  // the last device that is not one of the kernel's own
  Rules rules{.user = reader.user};
  rules.judge = [&](const Fd& part, const struct stat& status) -> Status {
    if (judged != status.st_dev) {
      if (Status usable = check_not_kernels(part, "it"); !usable) return usable;
      judged = status.st_dev;
    }
    if (S_ISLNK(status.st_mode)) return {};
    const bool is_folder = S_ISDIR(status.st_mode);
    if (may(part, status, reader, is_folder ? S_IXOTH : S_IROTH)) return {};
    return Error(is_folder ? "not everybody may search a folder on its path" : "not everybody may read it", EACCES);
  };
  Result<Fd> found = walk(path, rules);
  if (!found) return std::move(found).error().with_context("open " + name);
  return reopen_regular(*found, name);
}

Result<Fd> RootDirectory::open_as(const std::string& path, const Member& member, std::string_view mountinfo) const {
  std::optional<std::uint64_t> local;  // the last mount that was found to be
  Rules rules{.user = member.user, .may_climb = false, .triggers_automounts = false};
  rules.approach = [&](const Fd& part) { return check_local(part, mountinfo, local); };
  rules.judge = [&](const Fd& part, const struct stat& status) -> Status {
    if (S_ISLNK(status.st_mode)) return {};
    const bool is_folder = S_ISDIR(status.st_mode);
    if (has_access_control_list(part)) {
      return Error(is_folder ? "a folder on its path has an access control list" : "it has an access control list",
                   EACCES);
    }
    if (lets(member, status, is_folder ? S_IXOTH : S_IROTH)) return {};
    return Error(is_folder ? "owner, group and mode of a folder on its path do not let the user search it"
                           : "its owner, group and mode do not let the user read it",
                 EACCES);
  };
  const auto check = [&](const Fd& place) -> Status {
    struct stat status {};
    if (Status usable = rules.approach(place); !usable) return usable;
    if (::fstat(place.get(), &status) != 0) return plain_error(errno);
    return rules.judge(place, status);
  };
  if (Status usable = check(top_); !usable) return usable.error();
  const Result<Fd> found = walk(path, rules);
  if (!found) return found.error();
  Result<Fd> file = reopen_regular(*found, "it");
  if (!file) return file;
  // It is the same file, but its owner or mode may have changed meanwhile.
  if (Status usable = check(*file); !usable) return usable.error();
  return file;
}

}  // namespace flamed::symbolizer
