// SPDX-License-Identifier: Apache-2.0
//
// What the process does with freed memory. The kernel clears every page that it allocates: a query about a busy hour,
// which allocates and frees 100 MB, spent a third of its time on that when each query got its pages from the kernel.
#pragma once

namespace flamed {

/// From here on freed memory stays with the process, in one arena for all threads, until give_back_freed_memory(). Call
/// it before threads are started.
void keep_freed_memory();

/// To the kernel.
void give_back_freed_memory();

}  // namespace flamed
