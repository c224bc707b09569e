// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace flamed::daemon {

/// The frames at which the kernel silently ends its own walks (kernel.perf_event_max_stack), at most `most`.
std::uint32_t kernel_stack_limit(std::uint32_t most);

}  // namespace flamed::daemon
