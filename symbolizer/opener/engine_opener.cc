// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/engine_opener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "symbolizer/process/root_directory.h"

namespace flamed::symbolizer {
namespace {

bool is_trusted(uid_t user) { return user == 0 || user == ::geteuid(); }

}  // namespace

Result<Fd> connect_engine(const std::string& path, std::string_view question) {
  const Result<RootDirectory> root = RootDirectory::open("/");
  if (!root) return root.error();
  const Result<Fd> place = root->find(path, RootDirectory::Links::kRefused);
  if (!place && place.error().code() == ELOOP)
    return Error("its path has a symbolic link: name what it leads to", ELOOP);
  if (!place) return Error::from_errno("open", place.error().code());
  struct stat status {};
  if (::fstat(place->get(), &status) != 0) return Error::from_errno("stat");
  if (!S_ISSOCK(status.st_mode)) return Error("it is no socket", ENOTSOCK);
  if (!is_trusted(status.st_uid)) return Error("it is not root's but of user " + std::to_string(status.st_uid), EPERM);

  Fd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection) return Error::from_errno("socket");
  // Not by the path, which could lead elsewhere by now and may be longer than an address.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", place->get());
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == EAGAIN) return Error("it takes no more connections", EBUSY);
    if (errno != EACCES) return Error::from_errno("connect");
    return Error("flamed may not: give it the group of the socket, or CAP_DAC_OVERRIDE", EACCES);
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Error::from_errno("getsockopt");
  }
  if (!is_trusted(peer.uid)) return Error("not root but user " + std::to_string(peer.uid) + " listens there", EPERM);

  const ssize_t sent = ::send(connection.get(), question.data(), question.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return Error::from_errno("send");
  if (sent != static_cast<ssize_t>(question.size())) return Error("it does not take the question", EBUSY);
  if (::fcntl(connection.get(), F_SETFL, 0) != 0) return Error::from_errno("fcntl");
  return connection;
}

}  // namespace flamed::symbolizer
