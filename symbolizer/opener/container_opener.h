// SPDX-License-Identifier: Apache-2.0
//
// Finds what container runtimes of this host have written about a container: only paths of root's, without asking a
// runtime or a cluster for anything.
#pragma once

#include <string>
#include <vector>

#include "base/handle.h"
#include "symbolizer/model/container_file.h"

namespace flamed::symbolizer {

struct ContainerFiles {
  struct File {
    ContainerFormat format;
    Fd file;
  };
  std::string log_name{};     ///< of the kubelet's link to its log; empty: there is none, and there may be files
  std::vector<File> files{};  ///< the one that most likely has names first
};

inline constexpr std::size_t kMostContainerFiles = 4;

/// `id` as of is_container_id(). `root` stands before all paths.
ContainerFiles find_container_files(const std::string& id, const std::string& root = "");

}  // namespace flamed::symbolizer
