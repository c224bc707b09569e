// SPDX-License-Identifier: Apache-2.0
//
// DirectRootFiles: opens files in the calling thread, which may block on their file systems.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "symbolizer/model/root_files.h"

namespace flamed::symbolizer {

/// From the kernel's cached attributes: never waits for the file system. If unknown: root, and no device.
FileOwner owner_of(int fd);

/// May block on the file systems. Any thread.
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
