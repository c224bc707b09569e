// SPDX-License-Identifier: Apache-2.0
//
// Opens the file of a mapping: the mapped file itself, not another one that is at its path by now.
#pragma once

#include <cstdint>
#include <string>

#include "base/handle.h"
#include "base/result.h"
#include "symbolizer/process/module_table.h"

namespace flamed::symbolizer {

/// Where to search: paths depend on links and mounts, mappings lead to the file itself.
enum class ModuleSearch : std::uint8_t { kMappings, kPaths, kEverywhere };

/// Tries, in this order: the mapping itself (/proc/PID/map_files, right even for deleted files) if the process still
/// has the file mapped, the path in the process's root, in its parent's root, and on the host. A file is accepted only
/// if its device and inode are the mapping's, on overlayfs and btrfs as shown in a mapping. Opens only regular files.
/// `proc` is where procfs is mounted. May block on a slow file system.
Result<Fd> open_module(const OpenRequest& request, const std::string& proc,
                       ModuleSearch search = ModuleSearch::kEverywhere);

}  // namespace flamed::symbolizer
