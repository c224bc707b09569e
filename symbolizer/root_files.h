// SPDX-License-Identifier: Apache-2.0
//
// RootFiles: files by their paths in the roots of processes, opened for reading.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/handle.h"

namespace flamed::symbolizer {

struct RootFile {
  Fd file;  ///< none: there is no regular file, or it can't be opened
  /// It lies on a disk or in the memory of this machine, where reading it holds nobody up.
  bool is_local = false;
};

class RootFiles {
 public:
  virtual ~RootFiles() = default;

  static constexpr std::size_t kMostPaths = 4;
  static constexpr std::int32_t kHost = 0;
  /// One for each of `paths`, of which there are kMostPaths at most, in their order. Links are followed inside of the
  /// root. `pid`: whose root; kHost: flamed's own. `user`: see RootDirectory::open_regular_of().
  virtual std::vector<RootFile> open(std::int32_t pid, uid_t user, std::span<const std::string> paths) = 0;
};

/// Waits for as long as the file systems do. Any thread.
class DirectRootFiles final : public RootFiles {
 public:
  struct Options {
    std::string proc = "/proc";   ///< where procfs is mounted
    std::string host_root = "/";  ///< the host's own files
  };
  DirectRootFiles() : DirectRootFiles(Options()) {}
  explicit DirectRootFiles(Options options) : options_(std::move(options)) {}

  std::vector<RootFile> open(std::int32_t pid, uid_t user, std::span<const std::string> paths) override;

 private:
  const Options options_;
};

}  // namespace flamed::symbolizer
