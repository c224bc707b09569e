// SPDX-License-Identifier: Apache-2.0
//
// CodePlace: where code that a process has made at run time has its rows in the unwind tables. A value; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/identity.h"
#include "runtimes/frame_slots.h"

namespace flamed::daemon {

struct CodePlace {
  /// Addresses [start, end) of the process.
  struct Area {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;  ///< of `start` in the rows
    bool is_read = true;       ///< else it has no rows yet
  };
  ModuleId rows = kNoModule;  ///< UnwindPublisher::publish_code()
  /// Ascending, without overlaps. Empty: nothing has been read yet, and any memory without a file may be such code.
  std::vector<Area> areas{};
  /// How frames of its interpreter say which method they run. Empty: it is not known.
  std::optional<runtimes::FrameSlots> interpreter{};
  std::uint32_t layout = 0;  ///< its number in the kernel program, see flamed_process.runtime; 0: there is none
};
/// Null: the process has no such code.
using CodePlacePtr = std::shared_ptr<const CodePlace>;

}  // namespace flamed::daemon
