// SPDX-License-Identifier: Apache-2.0
//
// RootFiles: files by their paths in the roots of processes, opened for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/handle.h"

namespace flamed::symbolizer {

struct RootFile {
  Fd file;  ///< none: there is no regular file that counts, or it can't be opened
  /// It lies on a disk or in the memory of this machine, where reading it holds nobody up.
  bool is_local = false;
  /// It lies on another file system than the asked for owner's file, where set-user-ID does not count: a medium or a
  /// FUSE that a user may have mounted, and who made that said whose its files are. In flamed's own root that may be so
  /// of everything, as systemd sets it on mounts of a sandboxed service.
  bool is_foreign = false;
};

/// Whose a file is, and where it lies.
struct FileOwner {
  std::uint32_t user = 0;
  std::uint64_t device = 0;  ///< as stat(2) has it
};

class RootFiles {
 public:
  virtual ~RootFiles() = default;

  static constexpr std::size_t kMostPaths = 4;
  static constexpr std::int32_t kHost = 0;
  /// One for each of `paths`, of which there are kMostPaths at most, in their order. Links are followed inside of the
  /// root. `pid`: whose root; kHost: flamed's own.
  /// Only root's files and the owner's count, which nobody else can write to, and which the owner could open himself
  /// (RootDirectory::open_readable()). In a process's root, whose user may have arranged it, what is for root alone is
  /// not opened for root either.
  virtual std::vector<RootFile> open(std::int32_t pid, std::span<const std::string> paths, const FileOwner& owner) = 0;
};

}  // namespace flamed::symbolizer
