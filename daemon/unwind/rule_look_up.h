// SPDX-License-Identifier: Apache-2.0
//
// look_up_rule: finds a rule in the unwind tables as the kernel program does (bpf/walk/unwind_walk.h).
#pragma once

#include <cstdint>

#include "daemon/unwind/unwind_maps.h"
#include "unwinder/walk.h"

namespace flamed::daemon {

/// The code at a place in the file of the module with this index. Its rows must not change meanwhile.
unwinder::Code look_up_rule(UnwindMaps& maps, std::uint32_t index, std::uint64_t file_offset);

}  // namespace flamed::daemon
