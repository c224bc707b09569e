// SPDX-License-Identifier: Apache-2.0
//
// ModuleFiles: the open files that tell of one module.
#pragma once

namespace flamed::symbolizer {

/// The descriptors stay the caller's, their positions don't matter and aren't changed. -1: there is none.
struct ModuleFiles {
  int module = -1;     ///< what was mapped
  int debug = -1;      ///< its separate debug file
  int alternate = -1;  ///< what .gnu_debugaltlink names: pieces that several debug files share (dwz)
};

}  // namespace flamed::symbolizer
