// SPDX-License-Identifier: Apache-2.0
//
// RunDelay: how long a thread was ready to run and had no CPU. What it hears of may be that much older than it seems.
#pragma once

#include <cstdint>
#include <optional>

#include "base/handle.h"

namespace flamed::daemon {

/// Belongs to the thread that calls it first.
class RunDelay {
 public:
  /// Nanoseconds since the call before. Empty the first time, and where the kernel does not tell.
  std::optional<std::int64_t> since_last();

 private:
  [[nodiscard]] std::optional<std::int64_t> read();

  Fd sched_stat_{};
  std::optional<std::int64_t> waited_ns_{};  ///< in all, at the last call
};

}  // namespace flamed::daemon
