// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <malloc.h>

namespace flamed {
namespace {

/// The largest value that glibc accepts: larger blocks always come from the kernel.
constexpr int kFromKernelBytes = 32 << 20;
/// Free memory beyond this at the heap's end is returned at once.
constexpr int kMostKeptBytes = 512 << 20;

}  // namespace

void keep_freed_memory() {
  // With an arena for each thread, each would keep the memory of its largest query.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, kFromKernelBytes);
  ::mallopt(M_TRIM_THRESHOLD, kMostKeptBytes);
}

void give_back_freed_memory() { ::malloc_trim(0); }

}  // namespace flamed
