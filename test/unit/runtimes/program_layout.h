// SPDX-License-Identifier: Apache-2.0
//
// A runtime's layout as the kernel program has it.
#pragma once

#include "daemon/unwind/program_layout.h"

namespace flamed::runtimes {

inline flamed_linked_layout as_program_layout(const LinkedFrames& frames) {
  return daemon::as_program_layout(frames).value();
}

}  // namespace flamed::runtimes
