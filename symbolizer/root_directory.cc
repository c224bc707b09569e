// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/root_directory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "symbolizer/clean_name.h"
#include "symbolizer/proc_folder.h"

namespace flamed::symbolizer {

Result<Fd> reopen_regular(const Fd& path_only, const std::string& name) {
  struct stat status {};
  if (::fstat(path_only.get(), &status) != 0) return Error::from_errno("stat " + name);
  if (!S_ISREG(status.st_mode)) return Error(name + " is not a regular file");
  Fd file(::open(("/proc/self/fd/" + std::to_string(path_only.get())).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
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

namespace {

constexpr int kMostLinks = 40;  ///< as the kernel's path walk has it

/// `bit`: of the three for all others.
bool may(uid_t user, const struct stat& status, mode_t bit) {
  constexpr int kToOwner = 6;
  if (user == 0) return true;
  return (status.st_mode & (status.st_uid == user ? bit << kToOwner : bit)) != 0;
}

bool is_shown_by_kernel(const Fd& fd) {
  struct statfs system {};
  if (::fstatfs(fd.get(), &system) != 0) return false;  // as FUSE may, and none of these
  switch (static_cast<std::uint32_t>(system.f_type)) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case BPF_FS_MAGIC:
      return true;
    default:
      return false;
  }
}

void prepend_parts(std::string_view path, std::deque<std::string>& parts) {
  while (!path.empty()) {
    const std::size_t slash = path.find_last_of('/');
    const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
    if (begin < path.size()) parts.emplace_front(path.substr(begin));
    path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
}

}  // namespace

Result<Fd> RootDirectory::open_regular_of(uid_t user, const std::string& path) const {
  const std::string shown = clean_name(path, 255);
  std::vector<Fd> folders;  // on the way, without the top
  std::deque<std::string> parts;
  prepend_parts(path, parts);
  int links = 0;
  while (!parts.empty()) {
    const std::string part = std::move(parts.front());
    parts.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      if (!folders.empty()) folders.pop_back();
      continue;
    }
    const Fd& folder = folders.empty() ? top_ : folders.back();
    Fd found(::openat(folder.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!found || ::fstat(found.get(), &status) != 0) return Error::from_errno("open " + shown);
    if (is_shown_by_kernel(found)) return Error(shown + " leads to what the kernel shows as files");
    if (S_ISLNK(status.st_mode)) {
      if (status.st_uid != 0 && status.st_uid != user) return Error(shown + " leads over somebody else's link");
      std::array<char, PATH_MAX> target{};
      const ssize_t size = ::readlinkat(found.get(), "", target.data(), target.size());
      if (size <= 0 || ++links > kMostLinks) return Error(shown + " leads over too many links", ELOOP);
      const std::string_view to(target.data(), static_cast<std::size_t>(size));
      if (to.front() == '/') folders.clear();
      prepend_parts(to, parts);
    } else if (S_ISDIR(status.st_mode)) {
      if (!may(user, status, S_IXOTH)) return Error(shown + " lies where its user may not look", EACCES);
      folders.push_back(std::move(found));
    } else {
      if (!parts.empty()) return Error("open " + shown + ": Not a directory", ENOTDIR);
      if (status.st_uid != 0 && status.st_uid != user) return Error(shown + " belongs to somebody else", EACCES);
      if (!may(user, status, S_IROTH)) return Error(shown + " may not be read by its user", EACCES);
      return reopen_regular(found, shown);
    }
  }
  return Error(shown + " is not a regular file");
}

}  // namespace flamed::symbolizer
