// SPDX-License-Identifier: Apache-2.0
//
// RunDelay: how long a thread was ready to run without a CPU. Events that it reads may be that much older than they
// seem.
#pragma once

#include <cstdint>
#include <optional>

#include "base/handle.h"

namespace flamed::daemon {

/// Belongs to the thread that calls it first.
class RunDelay {
 public:
  /// Nanoseconds since the last call. Empty at the first call, and if the kernel does not report it.
  std::optional<std::int64_t> since_last();

 private:
  [[nodiscard]] std::optional<std::int64_t> read();

  Fd sched_stat_{};
  std::optional<std::int64_t> waited_ns_{};  ///< in all, at the last call
};

}  // namespace flamed::daemon
