// SPDX-License-Identifier: Apache-2.0
//
// Copies a source file for somebody who asks to see its text. Its path is what a program says, so it may be any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"

namespace flamed::symbolizer {

inline constexpr std::size_t kMostSourceBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMostSourceGroups = 1024;

struct SourceRequest {
  ProcessId process;  ///< in whose root directory it is
  std::string path;
  std::uint32_t viewer = 0;             ///< the user who wants to see it
  std::vector<std::uint32_t> groups{};  ///< all of the viewer's; at most kMostSourceGroups
};

struct SourceCopy {
  Fd text;  ///< in memory, so that reading it never waits; positioned at its begin
  std::int64_t modified_ns = 0;
};

/// Only if the viewer could trace the process: he is root, or all its users are he, its group is one of his, it is
/// dumpable, and it has no capabilities that he lacks (ptrace_may_access()). And only if he could read the file
/// himself, see RootDirectory::open_as(); for root the user and the groups of the process count instead, so that no
/// program can make flamed show what its own user could not read. Errors are phrases without the path, code ESRCH: the
/// process has ended. `proc` is where procfs is mounted. May block on a slow file system.
Result<SourceCopy> copy_source(const SourceRequest& request, const std::string& proc);

}  // namespace flamed::symbolizer
