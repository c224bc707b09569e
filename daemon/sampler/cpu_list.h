// SPDX-License-Identifier: Apache-2.0
//
// The kernel's notation for sets of CPUs: "0-3,8,10-11".
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamed::daemon {

/// CPU numbers in ascending order. Source: Documentation/admin-guide/cputopology.rst of the kernel.
Result<std::vector<int>> parse_cpu_list(std::string_view text);

}  // namespace flamed::daemon
