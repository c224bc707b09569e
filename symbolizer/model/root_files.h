// SPDX-License-Identifier: Apache-2.0
//
// RootFiles: opens files for reading by their paths in processes' root directories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/handle.h"

namespace flamed::symbolizer {

struct RootFile {
  Fd file;  ///< none: there is no acceptable regular file, or it can't be opened
  /// On a disk or in the memory of this machine, so reading it does not block.
  bool is_local = false;
  /// On another file system than the owner's file, and mounted nosuid: a medium or a FUSE that a user may have mounted,
  /// whose files may claim any owner. In flamed's own root directory this may hold for all files, since systemd mounts
  /// a sandboxed service's file systems nosuid.
  bool is_foreign = false;
};

/// A file's owner and device.
struct FileOwner {
  std::uint32_t user = 0;
  std::uint64_t device = 0;  ///< as in stat(2)
};

class RootFiles {
 public:
  virtual ~RootFiles() = default;

  static constexpr std::size_t kMostPaths = 4;
  static constexpr std::int32_t kHost = 0;
  /// One for each of at most kMostPaths `paths`, in order. Links are followed inside of the root directory. `pid`: the
  /// process whose root directory it is; kHost: flamed's own. Accepts only files of root or the owner that nobody else
  /// can write to, and that the owner could open himself (RootDirectory::open_readable()). In a process's root
  /// directory, which its user may have arranged, files that only root may read are not opened, even if the owner is
  /// root.
  virtual std::vector<RootFile> open(std::int32_t pid, std::span<const std::string> paths, const FileOwner& owner) = 0;
};

}  // namespace flamed::symbolizer
