// SPDX-License-Identifier: Apache-2.0
//
// Who used CPU, as JSON. Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "store/profile.h"
#include "store/usage.h"

namespace flamed::api {

/// {window, frequency_hz, samples, cpu_seconds, processes: [{id, pid, start_ticks, comm, executable, started, ended,
/// command_line, uid, unit, container, cgroup, parent, samples, cpu_seconds}]}, in the order given.
std::string render_processes(const store::WallWindow& window, std::span<const store::ProcessUsage> usage,
                             double frequency_hz);

}  // namespace flamed::api
