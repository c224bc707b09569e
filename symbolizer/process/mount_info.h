// SPDX-License-Identifier: Apache-2.0
//
// /proc/PID/mountinfo, parsed: which kind of file system a device is. Text in, values out. Layout: proc(5).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "symbolizer/model/file_key.h"

namespace flamed::symbolizer {

/// What is to be read of a mountinfo: a process can have as many mounts as it likes.
inline constexpr std::size_t kMountInfoLimitBytes = std::size_t{4} << 20;

/// The type of the file system on the key's device, such as "ext4"; empty when no line has the device.
std::string_view file_system_of(std::string_view mountinfo, const FileKey& key);

/// A mounted file system that may hang.
struct DoubtfulMount {
  std::string_view device;  ///< "0:45"
  std::string_view type;
};

/// The innermost that lies on the way to the absolute `path`; empty when none does. That of "/" does not count: without
/// it the process could not even run. Links on the way are not followed.
std::optional<DoubtfulMount> may_hang_on_the_way(std::string_view mountinfo, std::string_view path);

/// Whether opening a file there may wait for somebody else than this machine's kernel and its disks: another host, or a
/// process that serves the file system. Of what isn't known to be local that has to be assumed.
bool may_hang(std::string_view file_system);

}  // namespace flamed::symbolizer
