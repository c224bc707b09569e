// SPDX-License-Identifier: Apache-2.0
//
// Opening perf events.
#pragma once

#include <linux/perf_event.h>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::daemon {

/// perf_event_open(2) for every process on one CPU. `what` names the event in the error.
Result<Fd> open_perf_event(const perf_event_attr& attributes, int cpu, const char* what);

}  // namespace flamed::daemon
