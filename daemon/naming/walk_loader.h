// SPDX-License-Identifier: Apache-2.0
//
// load_walks(): loads the kernel programs that walk stacks by tables. The work of the `walks` thread: the kernel takes
// a second of CPU time to verify them, and the first samples' rows must not wait for that.
#pragma once

#include "daemon/sampler/kernel_program.h"
#include "symbolizer/names/kernel_symbols.h"

namespace flamed::daemon {

/// Logs what the kernel refuses. `by_tables`: there are tables for user stacks.
void load_walks(WalkPrograms& walks, symbolizer::KernelSymbols& kernel_symbols, bool by_tables,
                bool with_runtimes = false);

}  // namespace flamed::daemon
