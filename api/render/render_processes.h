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

/// The facts of an answer, and groups: [{name, select, processes, ended, samples, cpu_seconds}], in the order given.
/// `select` is a parameter of the API and its value, {"unit": "nginx.service"}, or null if none selects the group.
std::string render_process_groups(const store::UsageTable<store::GroupUsage>& usage, double frequency_hz);

}  // namespace flamed::api
