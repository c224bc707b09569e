// SPDX-License-Identifier: Apache-2.0
//
// CPU use of processes, as JSON. Pure; any thread.
#pragma once

#include <string>

#include "store/query/usage.h"

namespace flamed::api {

/// The facts of an answer, and processes: [{id, pid, start_ticks, comm, executable, started, ended, command_line, uid,
/// unit, container, cgroup, parent, samples, cpu_seconds}], in the order given.
std::string render_processes(const store::UsageTable<store::ProcessUsage>& usage, double frequency_hz);

}  // namespace flamed::api
