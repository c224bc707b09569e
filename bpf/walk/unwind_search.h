/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Binary searches without a branch: each step runs the same instructions, so that the verifier follows one path instead
 * of 2^steps. Also compiled on the host, where unit tests run it.
 */
#ifndef FLAMED_BPF_UNWIND_SEARCH_H
#define FLAMED_BPF_UNWIND_SEARCH_H

#include "bpf/kernel/opaque.h"
#include "bpf/unwind_tables.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Unrolled code: the verifier follows a loop once per iteration and keeps the state of each. */
#if defined(__clang__)
#define FLAMED_UNROLL _Pragma("unroll")
#else
#define FLAMED_UNROLL
#endif

/* All ones if a <= b, else 0; for values below 2^63. */
static __always_inline __u64 mask_if_at_most(__u64 a, __u64 b) {
  __u64 mask = ~(__u64)((__s64)(b - a) >> 63);
  FLAMED_OPAQUE(mask);
  return mask;
}

/*
 * 1 if a == b, else 0; for values below 2^63. For multiplication: for a mask of a shifted sign and a constant,
 * verifiers follow both outcomes (maybe_fork_scalars() in 6.18 and 6.12), for sixteen in a row all 2^16.
 */
static __always_inline __u64 one_if_equal(__u64 a, __u64 b) {
  __u64 one = ((a ^ b) - 1) >> 63;
  FLAMED_OPAQUE(one);
  return one;
}

/*
 * The last of `count` rows from `first` on that begins at or before `place`, a place within the page. `slab` has
 * FLAMED_SLAB_ROWS rows. The caller has checked that the first row does; count is 1 to FLAMED_MAX_PAGE_ROWS.
 */
static __always_inline __u32 find_row(const __u32* slab, __u32 first, __u32 count, __u32 place) {
  const __u64 key = ((__u64)place << 16) | 0xffff;
  __u64 base = first;
  __u64 left = count;

  FLAMED_UNROLL
  for (int step = 0; step < FLAMED_ROW_STEPS; step++) {
    __u64 half = left >> 1;
    __u64 middle = (base + half) & (FLAMED_SLAB_ROWS - 1);
    FLAMED_OPAQUE(middle);
    middle &= FLAMED_SLAB_ROWS - 1;
    base += half & mask_if_at_most(slab[middle], key);
    left -= half;
  }
  base &= FLAMED_SLAB_ROWS - 1;
  return slab[base];
}

/*
 * The index within the block of the last of `count` mappings from `first` on that starts at or before `address`. The
 * caller checks that it covers the address. All starts and the address are below 2^63: [vsyscall] is not in the tables.
 */
static __always_inline __u32 find_mapping(const struct flamed_mapping* block, __u32 first, __u32 count, __u64 address) {
  __u64 base = first;
  __u64 left = count;

  FLAMED_UNROLL
  for (int step = 0; step < FLAMED_MAPPING_STEPS; step++) {
    __u64 half = left >> 1;
    __u64 middle = base + half;
    FLAMED_OPAQUE(middle);
    middle &= FLAMED_BLOCK_MAPPINGS - 1;
    base += half & mask_if_at_most(block[middle].start, address);
    left -= half;
  }
  return (__u32)(base & (FLAMED_BLOCK_MAPPINGS - 1));
}

#endif /* FLAMED_BPF_UNWIND_SEARCH_H */
