// SPDX-License-Identifier: Apache-2.0
//
// UnixSocketPath: the path of a listening Unix socket in the file system. Any thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::api {

/// Removes its file in the end, if it is still the one that it created.
class UnixSocketPath {
 public:
  /// Binds `socket` to the path. The file gets mode 0660 and the group `flamed`, if there is one, before anybody can
  /// connect. Replaces the socket of a killed daemon; a socket in use, and anything that is not a socket, stays, and
  /// the error names its owner.
  ///
  /// A lock on `<path>.lock` keeps two daemons that start at once from both taking the path.
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
