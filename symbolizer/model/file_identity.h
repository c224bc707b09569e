// SPDX-License-Identifier: Apache-2.0
//
// FileIdentity: which file it is, and which version of its content.
#pragma once

#include <cstdint>
#include <optional>

namespace flamed::symbolizer {

/// Changes with the content.
struct FileVersion {
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

struct FileIdentity {
  /// As in stat(2). Major 0: a number that the kernel gave to a mount, and may give to another one later.
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  FileVersion version;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// As far as the kernel knows without asking the file system, which may not answer. Empty: it knows nothing.
std::optional<FileIdentity> identity_of(int fd);

}  // namespace flamed::symbolizer
