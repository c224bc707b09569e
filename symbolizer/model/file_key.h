// SPDX-License-Identifier: Apache-2.0
//
// FileKey: identifies a file independently of its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/keyed_hash.h"

namespace flamed::symbolizer {

/// Device and inode as the kernel shows them in /proc/PID/maps and in MMAP2 records. On overlayfs and btrfs they differ
/// from those of stat(2). All zero: no file.
struct FileKey {
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;

  [[nodiscard]] bool is_file() const { return inode != 0; }
  friend constexpr bool operator==(const FileKey&, const FileKey&) = default;
};

}  // namespace flamed::symbolizer

template <>
struct std::hash<flamed::symbolizer::FileKey> {
  std::size_t operator()(const flamed::symbolizer::FileKey& key) const noexcept {
    // The server of a file system chooses its inode numbers, so the hash has a key.
    const std::uint64_t device = (static_cast<std::uint64_t>(key.device_major) << 32) | key.device_minor;
    const std::uint64_t secret = flamed::process_hash_key();
    return static_cast<std::size_t>(flamed::hash_with(flamed::hash_with(~secret, device, secret), key.inode, secret));
  }
};
