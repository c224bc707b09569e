/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Assigns a CPU's sixteen caches of known sites to processes. A process without one gets the cache of the least
 * recently sampled process. With caches assigned by pid, a few servers would share one and clear each other's sites in
 * turn: nine processes in sixteen places give more than two pairs. Also compiled on the host, where unit tests run it.
 */
#ifndef FLAMED_BPF_SITE_OWNERS_H
#define FLAMED_BPF_SITE_OWNERS_H

#include "unwind_search.h"

#define FLAMED_SITE_PROCESSES 16 /* of each CPU: 66 KiB of known sites */

struct site_owners {
  /* By cache: when the process was sampled last (upper 32 bits), and its tgid; 0: free. */
  __u64 words[FLAMED_SITE_PROCESSES];
};

/*
 * The number of the process's cache. `now` is any number that grows with each sample; when its lower 31 bits wrap
 * around, a wrong process may lose its cache once.
 */
static __always_inline __u32 own_sites(struct site_owners* owners, __u32 tgid, __u64 now) {
  const __u64 word = (now & 0x7fffffff) << 32 | tgid;
  __u64 own = 0; /* its number + 1 */

  FLAMED_UNROLL
  for (__u64 i = 0; i < FLAMED_SITE_PROCESSES; i++) own += one_if_equal((__u32)owners->words[i], tgid) * (i + 1);
  if (!own) {
    __u64 oldest = owners->words[0];
    own = 1;
    FLAMED_UNROLL
    for (__u64 i = 1; i < FLAMED_SITE_PROCESSES; i++) {
      const __u64 is_older = mask_if_at_most(owners->words[i], oldest);
      oldest ^= (oldest ^ owners->words[i]) & is_older;
      own -= (i + 1 - own) * is_older; /* -1 or 0 */
    }
  }
  const __u32 number = (__u32)(own - 1) & (FLAMED_SITE_PROCESSES - 1);
  owners->words[number] = word;
  return number;
}

#endif /* FLAMED_BPF_SITE_OWNERS_H */
