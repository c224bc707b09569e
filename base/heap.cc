// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <malloc.h>

namespace flamed {
namespace {

/// The largest that glibc takes: larger blocks always come from the kernel.
constexpr int kFromKernelBytes = 32 << 20;
/// More free memory than this at the heap's end goes back at once.
constexpr int kMostKeptBytes = 512 << 20;

}  // namespace

void keep_freed_memory() {
  // With an arena for each thread every one of them would keep what its largest question took.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, kFromKernelBytes);
  ::mallopt(M_TRIM_THRESHOLD, kMostKeptBytes);
}

void give_back_freed_memory() { ::malloc_trim(0); }

}  // namespace flamed
