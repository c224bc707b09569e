// SPDX-License-Identifier: Apache-2.0
#include "api/socket/unix_socket_path.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/file.h"

namespace flamed::api {
namespace {

constexpr mode_t kMode = 0660;
constexpr mode_t kFolderMode = 0755;
constexpr mode_t kLockMode = 0600;
constexpr const char* kGroup = "flamed";
constexpr std::size_t kGroupEntryBytes = 16384;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}

std::optional<gid_t> group_of_readers() {
  group entry{};
  group* found = nullptr;
  std::array<char, kGroupEntryBytes> text{};
  if (::getgrnam_r(kGroup, &entry, text.data(), text.size(), &found) != 0 || found == nullptr) return std::nullopt;
  return entry.gr_gid;
}

/// " by flamed (pid 12)": the process that listens on a socket, or that holds its lock.
std::string by_whom(pid_t pid) {
  if (pid <= 0) return " by a process that cannot be seen from here";
  auto comm = read_file("/proc/" + std::to_string(pid) + "/comm", 64);
  std::string name = comm ? std::move(*comm) : std::string("a process");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return " by " + name + " (pid " + std::to_string(pid) + ")";
}

Error taken(const std::string& path, pid_t pid) {
  return Error(
      "cannot listen on unix:" + path + ": it is taken" + by_whom(pid) + "; choose another with --listen unix:/PATH",
      EADDRINUSE);
}

/// The process that listens on the socket at `path`; empty if there is none.
std::optional<pid_t> listener_at(const std::string& path) {
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_of(path);
  if (!probe) return 0;
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    // EAGAIN: a process listens with a full backlog. EACCES: unknown, so leave it.
    if (errno == ECONNREFUSED || errno == ENOENT) return std::nullopt;
    return 0;
  }
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return 0;
  return credentials.pid;
}

/// Removes the socket of a killed daemon. Call it with the lock, so that no other daemon does the same.
Status remove_stale(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return {};
    return Error::from_errno("cannot listen on unix:" + path);
  }
  if (!S_ISSOCK(found.st_mode)) {
    return Error("cannot listen on unix:" + path + ": there is something that is not a socket; remove it, or choose " +
                     "another with --listen unix:/PATH",
                 EEXIST);
  }
  if (const std::optional<pid_t> listener = listener_at(path)) return taken(path, *listener);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Error::from_errno("cannot listen on unix:" + path + ": cannot remove what an ended process left there");
  }
  return {};
}

Result<Fd> lock(const std::string& path) {
  const std::string name = path + ".lock";
  Fd file(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kLockMode));
  if (!file) return Error::from_errno("cannot listen on unix:" + path + ": cannot make " + name);
  // An open file description lock (fcntl_locking(2)): held until the descriptor is closed.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(file.get(), F_OFD_SETLK, &whole) != 0) {
    if (errno != EAGAIN && errno != EACCES)
      return Error::from_errno("cannot listen on unix:" + path + ": cannot lock " + name);
    return taken(path, listener_at(path).value_or(0));
  }
  return file;
}

}  // namespace

Result<UnixSocketPath> UnixSocketPath::bind(int socket, std::string path) {
  const std::string what = "cannot listen on unix:" + path;
  // For a start by hand; the service manager creates it otherwise.
  const std::string folder = path.substr(0, path.rfind('/'));
  if (!folder.empty() && ::mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    return Error::from_errno(what + ": cannot make " + folder);
  }
  Result<Fd> locked = lock(path);
  if (!locked) return std::move(locked).error();
  if (Status removed = remove_stale(path); !removed) return removed.error();
  const sockaddr_un address = address_of(path);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return Error::from_errno(what);

  // From here on by descriptor and not by path. Nobody can connect before listen().
  const Fd file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat made {};
  if (!file || ::fstat(file.get(), &made) != 0) return Error::from_errno(what);
  UnixSocketPath bound(std::move(path), std::move(*locked), made.st_dev, made.st_ino);
  if (const std::optional<gid_t> group = group_of_readers(); group && *group != made.st_gid) {
    // Without the right to change it, the file keeps its creator's group, normally root's.
    static_cast<void>(::fchownat(file.get(), "", static_cast<uid_t>(-1), *group, AT_EMPTY_PATH));
  }
  if (::chmod(("/proc/self/fd/" + std::to_string(file.get())).c_str(), kMode) != 0) return Error::from_errno(what);
  return bound;
}

UnixSocketPath::UnixSocketPath(UnixSocketPath&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      lock_(std::move(other.lock_)),
      device_(other.device_),
      inode_(other.inode_) {}

UnixSocketPath::~UnixSocketPath() {
  struct stat found {};
  if (path_.empty() || ::lstat(path_.c_str(), &found) != 0) return;
  if (found.st_dev == device_ && found.st_ino == inode_) static_cast<void>(::unlink(path_.c_str()));
}

}  // namespace flamed::api
