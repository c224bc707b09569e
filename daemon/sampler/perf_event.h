// SPDX-License-Identifier: Apache-2.0
//
// Perf events: opening them, and whether they are alive.
#pragma once

#include <linux/perf_event.h>

#include <span>
#include <vector>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::daemon {

/// perf_event_open(2) for every process on one CPU. `what` names the event in the error.
Result<Fd> open_perf_event(const perf_event_attr& attributes, int cpu, const char* what);

/// Those of the events that don't run: one that works runs on between two looks, whether its CPU is idle or not. They
/// must have PERF_FORMAT_TOTAL_TIME_RUNNING. Takes 20 ms where there may be some.
std::vector<int> find_dead_events(std::span<const int> events);
inline bool is_running(int event) { return find_dead_events({&event, 1}).empty(); }

}  // namespace flamed::daemon
