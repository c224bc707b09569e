// SPDX-License-Identifier: Apache-2.0
//
// What the kernel counts as locked memory: perf buffers, and BPF maps before 5.11.
#pragma once

#include <cerrno>

#include "base/result.h"

namespace flamed::daemon {

/// The error of who asked for such memory and may have it: EPERM says that there may be no more of it.
inline Error explain_locked_memory(const Error& error) {
  if (error.code() != EPERM) return error;
  return Error(error.message() + " (locked memory is limited: raise LimitMEMLOCK or kernel.perf_event_mlock_kb)",
               ENOMEM);
}

}  // namespace flamed::daemon
