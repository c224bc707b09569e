// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/root_directory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

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

Result<Fd> RootDirectory::open_regular(const std::string& path) const {
  const Result<Fd> found = find(path);
  if (!found) return found.error();
  return reopen_regular(*found, path);
}

}  // namespace flamed::symbolizer
