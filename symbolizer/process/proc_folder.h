// SPDX-License-Identifier: Apache-2.0
//
// The folder where procfs is mounted, `proc` below: what it has of whom. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/identity.h"

namespace flamed::symbolizer {

/// Of a process the file or folder `name`: "/proc/17/maps".
std::string proc_path(const std::string& proc, std::int32_t pid, std::string_view name);

/// Every process's, in no order. What happens meanwhile may be in it or not.
std::vector<std::int32_t> running_pids(const std::string& proc);

/// Does it run? Not when it is a zombie, and not when its pid is another process's by now.
bool is_alive(const std::string& proc, const ProcessId& process);

/// The tid of a thread besides the one that the process began with. Empty where there is none, or no such process.
std::optional<std::int32_t> other_thread(const std::string& proc, std::int32_t pid);

}  // namespace flamed::symbolizer
