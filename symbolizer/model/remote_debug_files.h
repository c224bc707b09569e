// SPDX-License-Identifier: Apache-2.0
//
// RemoteDebugFiles: separate debug files that another machine may have.
#pragma once

#include <string>

#include "base/handle.h"

namespace flamed::symbolizer {

/// Any thread.
class RemoteDebugFiles {
 public:
  virtual ~RemoteDebugFiles() = default;

  struct Answer {
    Fd file;
    bool pending = false;  ///< it is on its way: ask again
  };
  /// Never waits. Asking is what sets the search in motion. `build_id` in hex.
  virtual Answer find(const std::string& build_id) = 0;
};

}  // namespace flamed::symbolizer
