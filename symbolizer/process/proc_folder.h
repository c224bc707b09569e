// SPDX-License-Identifier: Apache-2.0
//
// Paths and processes in procfs, mounted at `proc`. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/identity.h"

namespace flamed::symbolizer {

/// The path of a process's file or folder `name`: "/proc/17/maps".
std::string proc_path(const std::string& proc, std::int32_t pid, std::string_view name);

/// All pids, in no order. Processes that start or end meanwhile may be missing.
std::vector<std::int32_t> running_pids(const std::string& proc);

/// Does it run? False for a zombie, and if its pid is another process's by now.
bool is_alive(const std::string& proc, const ProcessId& process);

/// The tid of a thread other than the process's first one. Empty if there is none, or no such process.
std::optional<std::int32_t> other_thread(const std::string& proc, std::int32_t pid);

}  // namespace flamed::symbolizer
