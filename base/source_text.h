// SPDX-License-Identifier: Apache-2.0
//
// The text of a source file. Plain values: the daemon reads it, answers show lines of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"

namespace flamed {

/// Which file, and for whom.
struct SourceQuestion {
  ProcessId process;                  ///< in whose root directory it is
  std::optional<WallTime> started{};  ///< when the process did
  ModuleId code;                      ///< what was compiled from it
  std::string file;
  std::uint32_t viewer = UINT32_MAX;    ///< the user who wants to see it; UINT32_MAX: nobody
  std::vector<std::uint32_t> groups{};  ///< all of the viewer's; none needed for root
};

struct SourceFile {
  std::string reason;     ///< why it is not shown, a phrase; empty: it is
  std::string text{};     ///< as it is in the file: any bytes
  bool is_newer = false;  ///< than the file of its code; if there is none, than its process
};

}  // namespace flamed
