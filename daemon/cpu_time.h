// SPDX-License-Identifier: Apache-2.0
//
// How busy the machine's CPUs are, by the kernel's own accounting.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace flamed::daemon {

/// Time that all CPUs together have spent running threads: user, nice and system of the first line of /proc/stat
/// (proc(5)), in nanoseconds. Interrupts are left out, because they may come while a CPU is idle, which is not sampled:
/// a machine that does nothing but route packets is no machine whose sampling has stalled. The kernel counts in steps
/// of 10 ms.
Result<std::int64_t> parse_busy_ns(std::string_view proc_stat);
Result<std::int64_t> read_busy_ns();

}  // namespace flamed::daemon
