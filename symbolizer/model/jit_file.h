// SPDX-License-Identifier: Apache-2.0
//
// JitFile: an open perf map or jitdump of a process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/handle.h"

namespace flamed::symbolizer {

enum class JitFormat : std::uint8_t {
  kPerfMap,  ///< text: "START SIZE name" in hex, a line each
  kJitDump,  ///< binary, as perf inject reads it
};

/// An immutable value. The pointer keeps the descriptor open, so the names outlive the file, the process and the
/// container.
struct JitFile {
  JitFormat format = JitFormat::kPerfMap;
  std::string path;  ///< in the process's root
  Fd file;           ///< regular, readable
  std::uint64_t device = 0, inode = 0;
};
using JitFilePtr = std::shared_ptr<const JitFile>;

/// The files of one process.
struct JitFiles {
  std::vector<JitFilePtr> files;  ///< at most one of each format
  std::string why_none;           ///< for people; empty if there is a file
};
using JitFilesPtr = std::shared_ptr<const JitFiles>;

}  // namespace flamed::symbolizer
