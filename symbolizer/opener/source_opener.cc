// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/source_opener.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "symbolizer/process/mount_info.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/process_status.h"
#include "symbolizer/process/root_directory.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kStatusLimitBytes = 65'536;  ///< a process may be in 65,536 groups; more are not read
constexpr int kMostNamespaces = 32;                ///< the kernel's own limit for those within each other

Error ended() { return Error("its process has ended", ESRCH); }
Error refused(const char* why) { return Error(why, EACCES); }

bool is_same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// Does the process have no capabilities that the user lacks? As cap_ptrace_access_check() finds it out, for a user
/// without capabilities in flamed's own user namespace: he has all in those that he made, and in those within them.
bool has_no_more_rights(const std::string& proc, std::int32_t pid, const ProcessStatus& status, std::uint32_t user) {
  struct stat own {};
  struct stat outer {};
  Fd space(::open(proc_path(proc, pid, "ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!space || ::stat("/proc/self/ns/user", &own) != 0 || ::fstat(space.get(), &outer) != 0) return false;
  if (is_same_file(own, outer)) return status.capabilities == 0;
  for (int depth = 0; depth < kMostNamespaces; ++depth) {
    Fd parent(::ioctl(space.get(), NS_GET_PARENT));
    if (!parent || ::fstat(parent.get(), &outer) != 0) return false;
    if (is_same_file(own, outer)) {
      uid_t maker = 0;
      return ::ioctl(space.get(), NS_GET_OWNER_UID, &maker) == 0 && maker == user;
    }
    space = std::move(parent);
  }
  return false;
}

/// The kernel's condition for tracing it (ptrace_may_access()), for users without capabilities.
Status check_traceable(const SourceRequest& request, const std::string& proc, const ProcessStatus& status) {
  const auto are = [](const ProcessStatus::Ids& ids, std::uint32_t id) {
    return ids.real == id && ids.effective == id && ids.saved == id;
  };
  if (!are(status.uid, request.viewer)) return refused("its process belongs to another user");
  const auto& groups = request.groups;
  if (!are(status.gid, status.gid.real) || std::find(groups.begin(), groups.end(), status.gid.real) == groups.end()) {
    return refused("its process belongs to a group that its user's account is not in");
  }
  struct stat owner {};
  // The kernel gives the files of processes that are not dumpable to root (task_dump_owner()).
  if (::stat(proc_path(proc, request.process.pid, "status").c_str(), &owner) != 0) return ended();
  if (owner.st_uid != request.viewer) return refused("its process is not dumpable");
  if (!has_no_more_rights(proc, request.process.pid, status, request.viewer)) {
    return refused("its process has capabilities that its user has not");
  }
  return {};
}

/// At most kMostSourceBytes, also if the file is being written.
Status copy(const Fd& from, const Fd& to) {
  std::array<char, 65'536> buffer;
  for (std::size_t total = 0;;) {
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0) return Error::from_errno("read it");
    if (got == 0) break;
    total += static_cast<std::size_t>(got);
    if (total > kMostSourceBytes) return Error("it has more than 4 MiB", EFBIG);
    if (::write(to.get(), buffer.data(), static_cast<std::size_t>(got)) != got) return Error::from_errno("copy it");
  }
  if (::lseek(to.get(), 0, SEEK_SET) != 0) return Error::from_errno("copy it");
  return {};
}

}  // namespace

Result<SourceCopy> copy_source(const SourceRequest& request, const std::string& proc) {
  const std::int32_t pid = request.process.pid;
  if (!request.path.starts_with('/')) {
    return refused("its path is relative, and it is not known to which folder");
  }
  if (request.path.size() >= PATH_MAX || request.path.find('\0') != std::string::npos) {
    return refused("its path is not one of a file");
  }
  if (!is_alive(proc, request.process)) return ended();
  const Result<RootDirectory> root = RootDirectory::of_process(proc, pid);
  const Result<std::string> mounts = read_file(proc_path(proc, pid, "mountinfo"), kMountInfoLimitBytes);
  const Result<std::string> status_text = read_file(proc_path(proc, pid, "status"), kStatusLimitBytes);
  const std::optional<ProcessStatus> status = status_text ? parse_process_status(*status_text) : std::nullopt;
  // Rights are checked after its root was opened: what it was when it had other rights, it might have left.
  RootDirectory::Member member{request.viewer, request.groups};
  Status traceable;
  if (request.viewer != 0 && status) traceable = check_traceable(request, proc, *status);
  // If the pid was reused meanwhile, all of this is another process's.
  if (!is_alive(proc, request.process)) return ended();
  if (!root || !mounts || !status) return refused("its process's root directory can't be read");
  if (!traceable) return traceable.error();
  if (request.viewer == 0) {
    member = {status->uid.effective, status->groups};
    member.groups.push_back(status->gid.effective);
  }

  const Result<Fd> file = root->open_as(request.path, member, *mounts);
  if (!file) return file.error();
  struct stat found {};
  if (::fstat(file->get(), &found) != 0) return Error::from_errno("stat it");
  if (found.st_size > static_cast<off_t>(kMostSourceBytes)) return Error("it has more than 4 MiB", EFBIG);
  SourceCopy result{Fd(::memfd_create("source", MFD_CLOEXEC)),
                    found.st_mtim.tv_sec * kNsPerSecond + found.st_mtim.tv_nsec};
  if (!result.text) return Error::from_errno("copy it");
  if (Status copied = copy(*file, result.text); !copied) return copied.error();
  return result;
}

}  // namespace flamed::symbolizer
