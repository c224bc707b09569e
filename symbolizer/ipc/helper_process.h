// SPDX-License-Identifier: Apache-2.0
//
// How the daemon starts its helpers: processes that run its own program under another name. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::symbolizer {

struct HelperProcess {
  pid_t pid = -1;  ///< the caller's child: to be reaped
  Fd pidfd;
  Fd socket;  ///< the daemon's end of a SOCK_SEQPACKET pair

  /// Waits at most so long for the process to end. Does not reap it.
  [[nodiscard]] bool ends_within(std::int64_t ns) const;
};

/// Starts `program` with `arguments`, of which the first is its name. It gets a session of its own (a Ctrl-C at the
/// daemon's terminal is the daemon's), default signals, no environment, and no descriptor but its end of the socket as
/// 0. Errors have no context.
Result<HelperProcess> start_helper(const std::string& program, std::vector<std::string> arguments);

}  // namespace flamed::symbolizer
