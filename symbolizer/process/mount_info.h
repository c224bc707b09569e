// SPDX-License-Identifier: Apache-2.0
//
// Parses /proc/PID/mountinfo: the types of file systems by device. Text in, values out. Layout: proc(5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "symbolizer/model/file_key.h"

namespace flamed::symbolizer {

/// How much of a mountinfo is read: a process can have any number of mounts.
inline constexpr std::size_t kMountInfoLimitBytes = std::size_t{4} << 20;

/// The type of the file system on the key's device, such as "ext4"; empty if no line has the device.
std::string_view file_system_of(std::string_view mountinfo, const FileKey& key);

/// The type of the file system of a mount, by its id (stx_mnt_id of statx(2)); empty if no line has it.
std::string_view file_system_of_mount(std::string_view mountinfo, std::uint64_t id);

/// A mounted file system that may hang.
struct DoubtfulMount {
  std::string_view device;  ///< "0:45"
  std::string_view type;
};

/// The innermost such mount on the absolute `path`; empty if there is none. The mount of "/" does not count: without it
/// the process could not even run. Links are not followed.
std::optional<DoubtfulMount> may_hang_on_the_way(std::string_view mountinfo, std::string_view path);

/// Whether opening a file there may wait for another host, or for a process that serves the file system. Assumed for
/// all types that are not known to be local.
bool may_hang(std::string_view file_system);

}  // namespace flamed::symbolizer
