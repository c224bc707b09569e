// SPDX-License-Identifier: Apache-2.0
//
// RootDirectory: a tree of files as one process sees it. Opens only regular files, and never outside of the tree. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::symbolizer {

class RootDirectory {
 public:
  /// `path` is the tree's top, such as /proc/PID/root.
  static Result<RootDirectory> open(const std::string& path);
  static Result<RootDirectory> of_process(const std::string& proc, std::int32_t pid);

  /// How to treat symbolic links on a path.
  enum class Links : std::uint8_t {
    kFollowed,    ///< inside the tree
    kNotTheLast,  ///< likewise, but the path may lead to one
    kRefused,     ///< with ELOOP
  };
  /// What `path` leads to, opened with O_PATH, which has no effects. Error messages are safe
  /// to print.
  [[nodiscard]] Result<Fd> find(const std::string& path, Links links = Links::kFollowed) const;
  /// The user for whom a file is opened. Checked by modes and owners, independently of flamed's own rights.
  struct Reader {
    std::uint32_t user = 0;  ///< only his links and root's are followed
    /// The file system on which he may also read private files of his own. On other file systems the owner may be a
    /// claim of the user who mounted it. None: nowhere.
    std::optional<std::uint64_t> own_device{};
  };
  /// Opens a regular file for reading if the reader could read it himself, with all folders on its path: because
  /// everybody may, or because it is his. Groups are ignored, and files of others with an access control list are
  /// refused.
  [[nodiscard]] Result<Fd> open_readable(const std::string& path, const Reader& reader) const;
  /// A user with all his groups.
  struct Member {
    std::uint32_t user = 0;
    std::vector<std::uint32_t> groups{};
  };
  /// Opens a regular file for reading if owner, group and modes of it, of the top, and of each folder on its path let
  /// the member read it. Whatever has an access control list is refused, and so is what is not on a disk or in the
  /// memory of this machine by `mountinfo`, which is that of the tree's process, and a path or link that leads above
  /// the top. Only his links and root's are followed. Errors do not have the path.
  [[nodiscard]] Result<Fd> open_as(const std::string& path, const Member& member, std::string_view mountinfo) const;

 private:
  explicit RootDirectory(Fd top) : top_(std::move(top)) {}
  struct Rules;
  /// What `path` leads to, opened with O_PATH if all its parts obey the rules.
  [[nodiscard]] Result<Fd> walk(const std::string& path, const Rules& rules) const;
  Fd top_;
};

/// Opens the file of `path_only` (O_PATH) for reading, if it is a regular file. Opening a device or a FIFO may block or
/// have effects, and so may files of procfs, sysfs, tracefs, debugfs and the like, which are refused. `name` is for
/// messages.
Result<Fd> reopen_regular(const Fd& path_only, const std::string& name);

}  // namespace flamed::symbolizer
