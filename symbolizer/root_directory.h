// SPDX-License-Identifier: Apache-2.0
//
// RootDirectory: a tree of files as one process sees it, for opening what stands in it without being led out of it or
// into something that is no file. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
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
  /// A regular file for reading, of root's or of `user`'s, where that user comes to it by links of root's or his own,
  /// through folders that he may search, and may read it, whatever flamed may. By modes for himself and for all; groups
  /// and access lists don't help him. Nothing of what the kernel shows as files (/proc, /sys).
  [[nodiscard]] Result<Fd> open_regular_of(uid_t user, const std::string& path) const;

 private:
  explicit RootDirectory(Fd top) : top_(std::move(top)) {}
  Fd top_;
};

/// Opens what `path_only` (O_PATH) stands for for reading, when it is a regular file: for a device or a FIFO that may
/// block or have effects. `name` is for messages.
Result<Fd> reopen_regular(const Fd& path_only, const std::string& name);

}  // namespace flamed::symbolizer
