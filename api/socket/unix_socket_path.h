// SPDX-License-Identifier: Apache-2.0
//
// UnixSocketPath: the name of a Unix socket in the file system, for as long as it is listened on. Any thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::api {

/// Removes its file in the end, if that is still the one it made.
class UnixSocketPath {
 public:
  /// Gives `socket` the name. The file gets mode 0660 and the group `flamed`, where there is one, before anybody can
  /// connect. What a daemon that was killed has left there is replaced; a socket that somebody listens on, and anything
  /// that is no socket, stays, and the error says whose it is.
  ///
  /// Two daemons that start at once cannot both take the name: it is held by a lock on the file `<path>.lock`.
  static Result<UnixSocketPath> bind(int socket, std::string path);

  UnixSocketPath(UnixSocketPath&& other) noexcept;
  UnixSocketPath& operator=(UnixSocketPath&&) = delete;
  ~UnixSocketPath();

 private:
  UnixSocketPath(std::string path, Fd lock, dev_t device, ino_t inode)
      : path_(std::move(path)), lock_(std::move(lock)), device_(device), inode_(inode) {}

  std::string path_;  ///< empty when moved from
  Fd lock_;
  dev_t device_;
  ino_t inode_;
};

}  // namespace flamed::api
