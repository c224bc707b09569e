/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The results of linked_walk_check.bpf.c for linked_walk_test.cc. */
#ifndef FLAMED_TEST_LINKED_WALK_CHECK_H
#define FLAMED_TEST_LINKED_WALK_CHECK_H

#include <linux/types.h>

/* For each CPU. */
struct linked_walk_counts {
  __u64 walks; /* that found frames */
  __u64 frames;
  __u64 ns;       /* of these walks */
  __u64 least_ns; /* of one of them */
  __u64 without_frames;
};

#endif /* FLAMED_TEST_LINKED_WALK_CHECK_H */
