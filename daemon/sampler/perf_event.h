// SPDX-License-Identifier: Apache-2.0
//
// Opening perf events.
#pragma once

#include <linux/perf_event.h>

#include <string>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::daemon {

/// What to do when perf_event_open failed with `code` where kernel.perf_event_paranoid is `paranoid`; empty when there
/// is nothing to advise.
std::string remedy_for_refused_event(int code, int paranoid);

/// perf_event_open(2) for every process on one CPU. `what` names the event in the error, which says what is missing
/// when the kernel refuses.
Result<Fd> open_perf_event(const perf_event_attr& attributes, int cpu, const char* what);

}  // namespace flamed::daemon
