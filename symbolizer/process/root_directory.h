// SPDX-License-Identifier: Apache-2.0
//
// RootDirectory: a tree of files as one process sees it, for opening what stands in it without being led out of it or
// into something that is no file. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::symbolizer {

class RootDirectory {
 public:
  /// `path` is the tree's top, such as /proc/PID/root.
  static Result<RootDirectory> open(const std::string& path);
  static Result<RootDirectory> of_process(const std::string& proc, std::int32_t pid);

  /// What a path that ends in a symbolic link stands for.
  enum class LastLink : std::uint8_t { kTarget, kItself };
  /// `path` with its links resolved inside the tree, opened with O_PATH: that touches nothing. The message of an error
  /// is fit to print.
  [[nodiscard]] Result<Fd> find(const std::string& path, LastLink last = LastLink::kTarget) const;
  /// For whom a file is opened. Judged by modes and owners, so that it is the same whatever rights flamed has.
  struct Reader {
    std::uint32_t user = 0;  ///< links of his and of root's are followed, nobody else's
    /// The file system on which he may also read what is his alone. Elsewhere whoever mounted it may say whose a file
    /// is. None: nowhere.
    std::optional<std::uint64_t> own_device{};
  };
  /// Opens for reading what is a regular file that the reader could read himself, folders on the way included: what
  /// everybody may, or what is his.
  /// Groups are not asked for, and what of others' files has an access control list does not count.
  [[nodiscard]] Result<Fd> open_readable(const std::string& path, const Reader& reader) const;

 private:
  explicit RootDirectory(Fd top) : top_(std::move(top)) {}
  Fd top_;
};

/// Opens what `path_only` (O_PATH) stands for for reading, when it is a regular file: for a device or a FIFO that may
/// block or have effects, and so may what the kernel shows as files (procfs, sysfs, tracefs, debugfs, ...). `name` is
/// for messages.
Result<Fd> reopen_regular(const Fd& path_only, const std::string& name);

}  // namespace flamed::symbolizer
