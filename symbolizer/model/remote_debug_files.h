// SPDX-License-Identifier: Apache-2.0
//
// RemoteDebugFiles: separate debug files from other machines.
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
    bool pending = false;  ///< it is being fetched: ask again
  };
  /// Never waits. The first call starts the search. `build_id` in hex.
  virtual Answer find(const std::string& build_id) = 0;
};

}  // namespace flamed::symbolizer
