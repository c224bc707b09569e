// SPDX-License-Identifier: Apache-2.0
//
// ModuleFiles: the open files of one module.
#pragma once

namespace flamed::symbolizer {

/// The caller keeps the descriptors; their positions are neither used nor changed. -1: none.
struct ModuleFiles {
  int module = -1;     ///< the mapped file
  int debug = -1;      ///< its separate debug file
  int alternate = -1;  ///< the file of .gnu_debugaltlink: parts that several debug files share (dwz)
};

}  // namespace flamed::symbolizer
