/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The results of kernel_walk_check.bpf.c for kernel_walk_test.cc. */
#ifndef FLAMED_TEST_KERNEL_WALK_CHECK_H
#define FLAMED_TEST_KERNEL_WALK_CHECK_H

#include <linux/types.h>

#include "bpf/events.h"

/* For each CPU. samples = equal + unequal + beyond_text + unsupported + deep. */
struct kernel_walk_counts {
  __u64 samples; /* of kernel code */
  __u64 equal;   /* both walks found the same addresses */
  __u64 unequal;
  __u64 beyond_text; /* left to the kernel: the stack goes through a module, a BPF program or a trampoline */
  __u64 deep;        /* because it has too many frames */
  __u64 unsupported; /* because of a row */
  __u64 frames;      /* these three: of the equal ones */
  __u64 walk_ns;
  __u64 kernel_ns;
};

/* The first stack on which the two walks differ. */
struct kernel_walk_example {
  __u32 walked; /* how many addresses */
  __u32 kernels;
  __u64 walked_addresses[FLAMED_MAX_KERNEL_FRAMES];
  __u64 kernels_addresses[FLAMED_MAX_KERNEL_FRAMES];
};

#endif /* FLAMED_TEST_KERNEL_WALK_CHECK_H */
