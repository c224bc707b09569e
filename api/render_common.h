// SPDX-License-Identifier: Apache-2.0
//
// The members that more than one answer has, so that a client reads them the same way everywhere. Pure; any thread.
#pragma once

#include <cstdint>

#include "api/json_writer.h"
#include "store/profile.h"

namespace flamed::api {

/// {"from": RFC 3339, "to": RFC 3339, "from_ms": unix milliseconds, "to_ms": unix milliseconds}
void append_window(JsonWriter& json, const store::WallWindow& window);

/// {"whole": n, "truncated": {reason: n, ...}, "lost": {reason: n, ...}}, with every reason, also those that are 0.
void append_quality(JsonWriter& json, const store::Quality& quality);

/// Members of a process's object: id ("pid@start_ticks", as the parameter pid takes it), pid, start_ticks, comm,
/// executable, started, ended, command_line, uid, unit, container, cgroup, parent (an id, or a pid where its start is not
/// known); null where not known.
void append_process(JsonWriter& json, const store::ProcessInfo& process);

double cpu_seconds(std::uint64_t ns);

}  // namespace flamed::api
