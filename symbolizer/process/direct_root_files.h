// SPDX-License-Identifier: Apache-2.0
//
// DirectRootFiles: opens files in the calling thread, for as long as their file systems take.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "symbolizer/model/root_files.h"

namespace flamed::symbolizer {

/// As the kernel knows it: a file system that may not answer is not asked. Where it can't be told, root's and nowhere.
FileOwner owner_of(int fd);

/// Waits for as long as the file systems do. Any thread.
class DirectRootFiles final : public RootFiles {
 public:
  struct Options {
    std::string proc = "/proc";   ///< where procfs is mounted
    std::string host_root = "/";  ///< the host's own files
  };
  DirectRootFiles() : DirectRootFiles(Options()) {}
  explicit DirectRootFiles(Options options) : options_(std::move(options)) {}

  std::vector<RootFile> open(std::int32_t pid, std::span<const std::string> paths, const FileOwner& owner) override;

 private:
  const Options options_;
};

}  // namespace flamed::symbolizer
