// SPDX-License-Identifier: Apache-2.0
//
// Finding the file behind a mapping again and opening it: the very file, not what stands at its path by now.
#pragma once

#include <cstdint>
#include <string>

#include "base/handle.h"
#include "base/result.h"
#include "symbolizer/process/module_table.h"

namespace flamed::symbolizer {

/// Where to look: paths lead wherever links and mounts do, mappings to the file itself.
enum class ModuleSearch : std::uint8_t { kMappings, kPaths, kEverywhere };

/// Tries, in this order: the mapping itself (/proc/PID/map_files, right even for deleted files) if the process still
/// has the file mapped, the path in the process's root, in its parent's root, and on the host. What is found so counts
/// only if device and inode are those of the mapping, on overlayfs and btrfs as a mapping shows them. Opens nothing but
/// regular files. `proc` is where procfs is mounted. May block on a slow file system.
Result<Fd> open_module(const OpenRequest& request, const std::string& proc,
                       ModuleSearch search = ModuleSearch::kEverywhere);

}  // namespace flamed::symbolizer
