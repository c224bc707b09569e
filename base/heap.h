// SPDX-License-Identifier: Apache-2.0
//
// What the process does with memory that it has freed. The kernel clears every page that it hands out: a question about
// a busy hour, which takes and frees 100 MB, spent a third of its time on that when each took them from the kernel
// anew.
#pragma once

namespace flamed {

/// From here on freed memory stays with the process, in one place for all threads, until it is given back. Before there
/// are threads.
void keep_freed_memory();

/// To the kernel.
void give_back_freed_memory();

}  // namespace flamed
